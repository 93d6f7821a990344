// Number of resident blocks per SM from a kernel's threads, registers and shared memory: Guerreiro et al. (2015), eq.
// 1-4. The share of the hardware in use (eq. 5) is occupancy(...) * threads / device.max_threads_per_multiprocessor.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "space/expression/expression_tree.hpp"

namespace ergotune {
namespace {

constexpr std::array<std::string_view, 5> kRequired{
    "device.max_blocks_per_multiprocessor", "device.max_threads_per_multiprocessor",
    "device.registers_per_multiprocessor", "device.shared_memory_per_multiprocessor", "device.warp_size"};

std::int64_t whole(const Value& value, std::string_view what) {
  if (value.is_string() ||
      (value.is_real() && value.as_real() != static_cast<double>(static_cast<std::int64_t>(value.as_real()))))
    throw EvaluationFault{fmt::format("{} must be a whole number, not {}", what, value.to_literal())};
  return value.as_integer();
}

std::int64_t property(const Scope& scope, std::string_view name, std::int64_t otherwise) {
  const Value* value = scope(name);
  return value == nullptr ? otherwise : whole(*value, name);
}

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

}  // namespace

std::span<const std::string_view> occupancy_required_names() { return kRequired; }

MultiprocessorLimits multiprocessor_limits(const Scope& scope) {
  std::array<std::int64_t, 5> device{};
  for (std::size_t i = 0; i < kRequired.size(); ++i) {
    const Value* value = scope(kRequired[i]);
    if (value == nullptr)
      throw EvaluationFault{fmt::format("occupancy() needs {}: name a device or a device profile", kRequired[i])};
    device[i] = whole(*value, kRequired[i]);
    if (device[i] < 0 || (i == 4 && device[i] == 0))
      throw EvaluationFault{fmt::format("{} cannot be {}", kRequired[i], device[i])};
  }
  // Allocation units (devRegAllocUnit per warp, devSharedMemAllocUnit): CUDA occupancy calculator, compute
  // capability 3.0 and later.
  const std::int64_t capability = property(scope, "device.compute_capability", 30);
  return {device[0],
          device[1],
          device[2],
          device[3],
          device[4],
          std::max<std::int64_t>(1, property(scope, "device.register_allocation_unit", 256)),
          std::max<std::int64_t>(1, property(scope, "device.shared_allocation_unit", capability >= 80 ? 128 : 256))};
}

std::int64_t resident_blocks(const MultiprocessorLimits& limits, std::int64_t threads, std::int64_t registers,
                             std::int64_t shared_bytes) {
  const std::int64_t warps = (threads + limits.warp - 1) / limits.warp;                 // kerWTB
  std::int64_t blocks = std::min(limits.blocks, limits.threads / limits.warp / warps);  // eq. 2
  if (shared_bytes > 0)
    blocks = std::min(blocks, limits.shared_bytes / round_up(shared_bytes, limits.shared_unit));  // eq. 3
  if (registers > 0) {
    const std::int64_t registers_per_warp = round_up(registers * limits.warp, limits.register_unit);
    blocks = std::min(blocks, limits.registers / registers_per_warp / warps);  // eq. 4
  }
  return blocks;  // eq. 1
}

Value evaluate_occupancy(const Value& threads_value, const Value& registers_value, const Value& shared_value,
                         const Scope& scope) {
  const MultiprocessorLimits limits = multiprocessor_limits(scope);
  const std::int64_t threads = whole(threads_value, "the threads of occupancy()");
  const std::int64_t registers = whole(registers_value, "the registers of occupancy()");
  const std::int64_t shared = whole(shared_value, "the shared memory of occupancy()");
  constexpr std::int64_t kSane = std::int64_t{1} << 40;
  if (threads <= 0 || threads > kSane || registers < 0 || registers > kSane || shared < 0 || shared > kSane)
    throw EvaluationFault{fmt::format("occupancy({}, {}, {}) makes no sense", threads, registers, shared)};
  return Value(resident_blocks(limits, threads, registers, shared));
}

}  // namespace ergotune
