#include "kernel/occupancy.hpp"

#include <algorithm>
#include <cmath>

#include "device/backend.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune {
namespace {

/// Returns nullopt if the device does not report the property, or has no such limit.
std::optional<double> limit(const Constants& properties, const char* name) {
  const auto found = properties.find(name);
  if (found == properties.end() || !found->second.is_number()) return std::nullopt;
  const double value = found->second.as_real();
  if (value <= 0 || value >= static_cast<double>(device::kNoLimit)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Occupancy> occupancy_of(const BlockNeeds& needs, const Constants& properties) {
  const auto threads = limit(properties, "device.max_threads_per_multiprocessor");
  const auto warp = limit(properties, "device.warp_size");
  if (!threads || !warp || needs.threads < 1) return std::nullopt;
  // unknown or missing limits do not restrict the occupancy
  Constants known = properties;
  known["device.max_blocks_per_multiprocessor"] =
      static_cast<std::int64_t>(limit(properties, "device.max_blocks_per_multiprocessor").value_or(*threads));
  for (const char* name : {"device.registers_per_multiprocessor", "device.shared_memory_per_multiprocessor"})
    if (!limit(properties, name)) known[name] = device::kNoLimit;
  const auto whole = [](double amount) { return static_cast<std::int64_t>(std::ceil(amount)); };
  Occupancy occupancy;
  try {
    const MultiprocessorLimits limits = multiprocessor_limits([&](std::string_view name) -> const Value* {
      const auto found = known.find(name);
      return found == known.end() ? nullptr : &found->second;
    });
    occupancy.blocks = static_cast<int>(
        resident_blocks(limits, whole(needs.threads), whole(needs.registers), whole(needs.shared_bytes)));
  } catch (const EvaluationFault&) {
    return std::nullopt;
  }
  const double warps = std::ceil(needs.threads / *warp);
  occupancy.share = std::min(1.0, occupancy.blocks * warps * *warp / *threads);  // equation 5
  const auto taken = [&](const char* name, double amount) {
    if (const auto most = limit(properties, name)) occupancy.need = std::max(occupancy.need, amount / *most);
  };
  taken("device.max_threads_per_block", needs.threads);
  // CUDA grants dynamic shared memory beyond device.shared_memory_per_block
  const bool optin = limit(properties, "device.shared_memory_per_block_optin").has_value();
  taken(optin ? "device.shared_memory_per_block_optin" : "device.shared_memory_per_block", needs.shared_bytes);
  taken("device.shared_memory_per_multiprocessor", needs.shared_bytes);
  taken("device.registers_per_multiprocessor", warps * *warp * needs.registers);
  occupancy.method = "from registers and shared memory";
  return occupancy;
}

std::optional<Occupancy> occupancy_of(const LoadedKernel::Resources& resources, const LaunchGeometry& geometry,
                                      const Constants& properties, std::optional<int> resident_blocks) {
  BlockNeeds needs;
  needs.threads = static_cast<double>(geometry.block[0]) * geometry.block[1] * geometry.block[2];
  needs.registers = std::max(0, resources.registers);
  needs.shared_bytes = std::max(0, resources.shared_bytes) + static_cast<double>(geometry.shared_memory_bytes);
  auto occupancy = occupancy_of(needs, properties);
  if (!occupancy || !resident_blocks) return occupancy;
  const double warp = limit(properties, "device.warp_size").value_or(1);
  const double warps = std::ceil(needs.threads / warp);
  const double threads = *limit(properties, "device.max_threads_per_multiprocessor");
  const bool agree = occupancy->blocks == *resident_blocks;
  occupancy->method = agree ? "the driver's number, and from registers and shared memory"
                            : "reported by the driver; registers and shared memory give " +
                                  std::to_string(occupancy->blocks) + " blocks per SM, not " +
                                  std::to_string(*resident_blocks);
  occupancy->blocks = *resident_blocks;
  occupancy->share = std::min(1.0, *resident_blocks * warps * warp / threads);
  return occupancy;
}

}  // namespace ergotune
