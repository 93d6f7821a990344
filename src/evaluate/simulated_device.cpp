#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/hash.hpp"
#include "ergotune/base/random.hpp"
#include "ergotune/evaluate/simulated.hpp"
#include "evaluate/simulated_kernel.hpp"

namespace ergotune {
namespace {

using simulation::KernelModel;
using simulation::Work;

constexpr double kLaunchOverhead = 3e-6;        // s
constexpr double kComputeLatencyHiding = 0.05;  // occupancy at which half of the issue slots would be filled
constexpr double kMemoryLatencyHiding = 0.15;   // the same for requests to memory
constexpr double kSharpness = 4;                // how sharply the roofs of compute and memory meet
constexpr double kIdlingShare = 0.4;            // of dynamic power that flows while warps wait

double number(const DeviceProfile& profile, const std::string& key,
              std::optional<double> otherwise = std::nullopt) {
  const auto it = profile.numbers.find(key);
  if (it != profile.numbers.end()) return it->second;
  if (otherwise) return *otherwise;
  throw UserError(fmt::format("the profile of {} has no {}: it cannot be simulated", profile.name, key));
}

double property(const DeviceProfile& profile, const std::string& key, double otherwise) {
  const auto it = profile.properties.find("device." + key);
  return it == profile.properties.end() ? otherwise : it->second.as_real();
}

/// The board's numbers, looked up once.
struct Board {
  explicit Board(const DeviceProfile& p)
      : multiprocessors(property(p, "multiprocessors", 1)),
        warp(property(p, "warp_size", 32)),
        max_threads_per_block(property(p, "max_threads_per_block", 1024)),
        max_threads(property(p, "max_threads_per_multiprocessor", 2048)),
        max_blocks(property(p, "max_blocks_per_multiprocessor", 16)),
        registers(property(p, "registers_per_multiprocessor", 65536)),
        shared(property(p, "shared_memory_per_multiprocessor", 49152)),
        shared_per_block(property(p, "shared_memory_per_block", 49152)),
        flops_per_cycle(number(p, "compute.sp_flops_per_cycle")),
        bandwidth(number(p, "compute.bandwidth")),
        boost_mhz(number(p, "clock.boost_mhz")),
        memory_mhz(number(p, "clock.memory_mhz")),
        idle(number(p, "power.idle_w")),
        dynamic(number(p, "power.dynamic_w_per_mhz")),
        slope(number(p, "power.voltage_slope_per_mhz")),
        ridge(number(p, "power.ridge_mhz")),
        memory_w(number(p, "power.memory_w")),
        limit(number(p, "power.limit_max_w")),
        ambient(number(p, "thermal.ambient_c", 27)),
        resistance(number(p, "thermal.resistance_c_per_w", 0)),
        leakage(number(p, "thermal.leakage_per_c", 0)) {}
  double multiprocessors, warp, max_threads_per_block, max_threads, max_blocks, registers, shared,
      shared_per_block;
  double flops_per_cycle, bandwidth, boost_mhz, memory_mhz;
  double idle, dynamic, slope, ridge, memory_w, limit, ambient, resistance, leakage;

  double voltage(double f) const { return 1 + slope * std::max(0.0, f - ridge); }
};

struct State {
  double seconds = 0, watts = 0, temperature = 0;
};

/// Blocks of `work` that fit on one multiprocessor; 0 when none does.
double resident_blocks(const Board& board, const Work& work) {
  const double warps = std::ceil(work.threads / board.warp);
  double blocks = std::min(board.max_blocks, std::floor(board.max_threads / board.warp / warps));
  if (work.registers > 0)
    blocks = std::min(blocks, std::floor(board.registers / (work.registers * warps * board.warp)));
  if (work.shared_bytes > 0) blocks = std::min(blocks, std::floor(board.shared / work.shared_bytes));
  return blocks;
}

/// Time and power at a core and a memory clock that are really running.
State run(const Board& board, const Work& work, double resident, double core_mhz, double memory_mhz) {
  const double warps = std::ceil(work.threads / board.warp);
  // Short of blocks, some multiprocessors stay empty, and the last wave is not full.
  const double places = resident * board.multiprocessors;
  const double waves = std::ceil(work.blocks / places);
  const double filled = work.blocks / (waves * places);
  const double occupancy = std::min(1.0, resident * warps * board.warp / board.max_threads);
  const double full_warps = work.threads / (warps * board.warp);
  const double clock = core_mhz / board.boost_mhz;

  const double issue = work.efficiency * full_warps * filled * (1 + kComputeLatencyHiding) * occupancy /
                       (occupancy + kComputeLatencyHiding);
  const double compute_seconds = work.flops / (board.flops_per_cycle * core_mhz * 1e6 * std::min(1.0, issue));
  // A slower core clock sends fewer requests: more warps are needed to keep the memory busy.
  const double requests = occupancy * clock * std::min(1.0, 0.25 + 0.75 * filled);
  const double bandwidth = board.bandwidth * memory_mhz / board.memory_mhz * (1 + kMemoryLatencyHiding) *
                           requests / (requests + kMemoryLatencyHiding);
  const double memory_seconds = work.bytes / bandwidth;
  State state;
  state.seconds =
      kLaunchOverhead +
      std::pow(std::pow(compute_seconds, kSharpness) + std::pow(memory_seconds, kSharpness), 1 / kSharpness);
  const double busy = work.flops / (board.flops_per_cycle * core_mhz * 1e6) / state.seconds;
  const double moved = work.bytes / (board.bandwidth * state.seconds);
  const double v = board.voltage(core_mhz);
  const double activity = filled * kIdlingShare + (1 - kIdlingShare) * std::min(1.0, busy);
  const double dynamic = board.dynamic * core_mhz * v * v * work.power * activity;
  const double memory = board.memory_w * (moved + 0.1 * (memory_mhz / board.memory_mhz - 1));
  // Leakage grows with the temperature that the power itself makes: two steps of the fixed point are plenty.
  // Idle power is given at 20 degrees above ambient.
  state.watts = board.idle + dynamic + memory;
  for (int i = 0; i < 2; ++i) {
    state.temperature = board.ambient + board.resistance * state.watts;
    state.watts =
        board.idle * (1 + board.leakage * (state.temperature - board.ambient - 20)) + dynamic + memory;
  }
  return state;
}

}  // namespace

struct SimulatedDevice::State {
  State(DeviceProfile p, const Problem& problem, std::vector<Parameter> parameters,
        const SimulationOptions& o)
      : profile(std::move(p)), board(profile), kernel(profile, problem, std::move(parameters)), options(o) {}
  DeviceProfile profile;
  Board board;
  KernelModel kernel;
  SimulationOptions options;
};

SimulatedDevice::SimulatedDevice(DeviceProfile profile, const Problem& problem,
                                 std::vector<Parameter> parameters, const SimulationOptions& options)
    : state_(std::make_unique<State>(std::move(profile), problem, std::move(parameters), options)) {}
SimulatedDevice::SimulatedDevice(SimulatedDevice&&) noexcept = default;
SimulatedDevice::~SimulatedDevice() = default;

const DeviceProfile& SimulatedDevice::profile() const { return state_->profile; }

Measurement SimulatedDevice::truth(const Configuration& configuration) const {
  const Board& board = state_->board;
  Measurement result;
  const auto failed = [&](Status status, const std::string& message) {
    result.status = status;
    result.message = message;
    result.compile_seconds = state_->options.compile_seconds;
    return result;
  };
  const Work work = state_->kernel.work(configuration);
  if (work.threads > board.max_threads_per_block) {
    return failed(Status::launch_error, fmt::format("{} threads per block, the device takes {}", work.threads,
                                                    board.max_threads_per_block));
  }
  const double resident = resident_blocks(board, work);
  if (resident < 1 || work.shared_bytes > board.shared_per_block) {
    return failed(Status::launch_error,
                  fmt::format("too many resources requested: {} registers per thread, {} bytes "
                              "of shared memory, {} threads per block",
                              work.registers, work.shared_bytes, work.threads));
  }

  double asked = board.boost_mhz, memory = board.memory_mhz, limit = board.limit;
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    switch (state_->kernel.parameters()[i].kind) {
      case ParameterKind::core_clock_mhz:
        asked = configuration[i].as_real();
        break;
      case ParameterKind::memory_clock_mhz:
        memory = configuration[i].as_real();
        break;
      case ParameterKind::power_limit_w:
        limit = configuration[i].as_real();
        break;
      case ParameterKind::code:
        break;
    }
  }
  double ran = asked;
  auto state = run(board, work, resident, ran, memory);
  if (state.watts > limit) {
    double low = 1, high = asked;
    for (int i = 0; i < 50; ++i) {
      const double middle = 0.5 * (low + high);
      (run(board, work, resident, middle, memory).watts > limit ? high : low) = middle;
    }
    ran = low;
    state = run(board, work, resident, ran, memory);
    result.warnings.push_back(fmt::format("asked {:.0f} MHz, ran {:.0f} MHz, power cap", asked, ran));
  }
  const auto put = [&](const char* name, double value) {
    Quantity quantity;
    quantity.value = value;
    quantity.n = 1;
    quantity.method = "simulation";
    quantity.provenance = Provenance::simulated;
    result.quantities[name] = quantity;
  };
  put("time", state.seconds);
  put("power", state.watts);
  put("energy", state.watts * state.seconds);
  put("core_clock", ran * 1e6);
  put("memory_clock", memory * 1e6);
  put("temperature", state.temperature);
  put("registers", work.registers);
  put("shared_bytes", work.shared_bytes);
  result.compile_seconds = state_->options.compile_seconds;
  result.measure_seconds = state_->options.launches * state.seconds + state_->options.energy_seconds;
  return result;
}

Measurement SimulatedDevice::measure(const Configuration& configuration, std::uint64_t repeat) const {
  Measurement result = truth(configuration);
  if (!result.ok()) return result;
  std::string key;
  for (const Value& value : configuration) key += value.to_literal() + ",";
  Random random(hash64(key, state_->options.seed * 1000003 + repeat));
  const double time_factor = 1 + state_->options.time_noise * random.normal();
  const double power_factor = 1 + state_->options.power_noise * random.normal();
  const auto scale = [&](const char* name, double factor, double error) {
    Quantity& quantity = result.quantities[name];
    quantity.value *= factor;
    quantity.standard_error = quantity.value * error;
    quantity.n = state_->options.launches;
  };
  scale("time", time_factor, state_->options.time_noise);
  scale("power", power_factor, state_->options.power_noise);
  scale("energy", time_factor * power_factor,
        std::hypot(state_->options.time_noise, state_->options.power_noise));
  return result;
}

}  // namespace ergotune
