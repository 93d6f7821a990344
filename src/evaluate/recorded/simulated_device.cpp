#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "base/hash.hpp"
#include "ergotune/random.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "evaluate/recorded/simulated_kernel.hpp"
#include "kernel/occupancy.hpp"
#include "kernel/round.hpp"

namespace ergotune {
namespace {

using simulation::KernelModel;
using simulation::Work;

constexpr double kLaunchOverhead = 3e-6;        // s
constexpr double kComputeLatencyHiding = 0.05;  // occupancy at which half of the issue slots would be filled
constexpr double kMemoryLatencyHiding = 0.15;   // the same for requests to memory
constexpr double kSharpness = 4;                // how sharply the compute and memory roofs meet
constexpr double kIdlingShare = 0.4;            // share of dynamic power that is drawn while warps wait

double number(const DeviceProfile& profile, const std::string& key, std::optional<double> otherwise = std::nullopt) {
  const auto it = profile.numbers.find(key);
  if (it != profile.numbers.end()) return it->second;
  if (otherwise) return *otherwise;
  throw UserError(fmt::format("the profile of {} has no {}: it cannot be simulated", profile.name, key));
}

double property(const DeviceProfile& profile, const std::string& key, double otherwise) {
  const auto it = profile.properties.find("device." + key);
  return it == profile.properties.end() ? otherwise : it->second.as_real();
}

/// The values of the GPU's profile.
struct Gpu {
  explicit Gpu(const DeviceProfile& p)
      : multiprocessors(property(p, "multiprocessors", 1)),
        warp(property(p, "warp_size", 32)),
        max_threads_per_block(property(p, "max_threads_per_block", 1024)),
        max_threads(property(p, "max_threads_per_multiprocessor", 2048)),
        max_blocks(property(p, "max_blocks_per_multiprocessor", 16)),
        registers(property(p, "registers_per_multiprocessor", 65536)),
        shared(property(p, "shared_memory_per_multiprocessor", 49152)),
        shared_per_block(property(p, "shared_memory_per_block_optin", property(p, "shared_memory_per_block", 49152))),
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
  double multiprocessors, warp, max_threads_per_block, max_threads, max_blocks, registers, shared, shared_per_block;
  double flops_per_cycle, bandwidth, boost_mhz, memory_mhz;
  double idle, dynamic, slope, ridge, memory_w, limit, ambient, resistance, leakage;

  double voltage(double f) const { return 1 + slope * std::max(0.0, f - ridge); }
  /// The GPU as seen by kernels that are restricted to `of` SMs or CUs; memory is shared.
  Gpu part(double of) const {
    Gpu some = *this;
    some.multiprocessors = of;
    some.flops_per_cycle *= of / multiprocessors;
    some.dynamic *= of / multiprocessors;
    return some;
  }
};

struct State {
  double seconds = 0, watts = 0, temperature = 0;
  double compute = 0, memory = 0;  ///< s that compute or memory alone would take
};

/// Blocks of `work` that fit on one SM or CU; 0 if none fits.
double resident_blocks(const Gpu& gpu, const Work& work) {
  const double warps = std::ceil(work.threads / gpu.warp);
  double blocks = std::min(gpu.max_blocks, std::floor(gpu.max_threads / gpu.warp / warps));
  if (work.registers > 0) blocks = std::min(blocks, std::floor(gpu.registers / (work.registers * warps * gpu.warp)));
  if (work.shared_bytes > 0) blocks = std::min(blocks, std::floor(gpu.shared / work.shared_bytes));
  return blocks;
}

/// Time and power at the actual core and memory clocks.
State run(const Gpu& gpu, const Work& work, double resident, double core_mhz, double memory_mhz) {
  const double warps = std::ceil(work.threads / gpu.warp);
  // With too few blocks, some SMs stay empty, and the last wave is not full.
  const double places = resident * gpu.multiprocessors;
  const double waves = std::ceil(work.blocks / places);
  const double filled = work.blocks / (waves * places);
  const double occupancy = std::min(1.0, resident * warps * gpu.warp / gpu.max_threads);
  const double full_warps = work.threads / (warps * gpu.warp);
  const double clock = core_mhz / gpu.boost_mhz;

  const double issue = work.efficiency * full_warps * filled * (1 + kComputeLatencyHiding) * occupancy /
                       (occupancy + kComputeLatencyHiding);
  const double compute_seconds = work.flops / (gpu.flops_per_cycle * core_mhz * 1e6 * std::min(1.0, issue));
  // At a lower core clock fewer requests are sent: more warps are needed to keep the memory busy.
  const double requests = occupancy * clock * std::min(1.0, 0.25 + 0.75 * filled);
  const double bandwidth = gpu.bandwidth * memory_mhz / gpu.memory_mhz * (1 + kMemoryLatencyHiding) * requests /
                           (requests + kMemoryLatencyHiding);
  const double memory_seconds = work.bytes / bandwidth;
  State state;
  state.seconds =
      kLaunchOverhead +
      std::pow(std::pow(compute_seconds, kSharpness) + std::pow(memory_seconds, kSharpness), 1 / kSharpness);
  state.compute = work.flops / (gpu.flops_per_cycle * core_mhz * 1e6 * work.efficiency * full_warps);
  state.memory = work.bytes / (gpu.bandwidth * memory_mhz / gpu.memory_mhz);
  const double busy = work.flops / (gpu.flops_per_cycle * core_mhz * 1e6) / state.seconds;
  const double moved = work.bytes / (gpu.bandwidth * state.seconds);
  const double v = gpu.voltage(core_mhz);
  const double activity = filled * kIdlingShare + (1 - kIdlingShare) * std::min(1.0, busy);
  const double dynamic = gpu.dynamic * core_mhz * v * v * work.power * activity;
  const double memory = gpu.memory_w * (moved + 0.1 * (memory_mhz / gpu.memory_mhz - 1));
  // Leakage grows with the temperature that the power causes: two steps of the fixed-point iteration are enough. Idle
  // power is given at 20 degrees above ambient.
  state.watts = gpu.idle + dynamic + memory;
  for (int i = 0; i < 2; ++i) {
    state.temperature = gpu.ambient + gpu.resistance * state.watts;
    state.watts = gpu.idle * (1 + gpu.leakage * (state.temperature - gpu.ambient - 20)) + dynamic + memory;
  }
  return state;
}

/// A launch of an iteration, with its work.
struct SimulatedLaunch {
  IterationLaunch launch;
  Work work;
  double resident = 0;
  double multiprocessors = 0;  ///< SMs or CUs reserved for it; 0: all, shared with other launches
};

/// An iteration at the actual clocks. Times of consecutive launches add up. Concurrent kernels share the device: they
/// end when the longest would have ended alone, or when all their work is done, whichever is later; power that does not
/// depend on the kernels counts once.
struct Round : State {
  std::vector<double> kernel_seconds;
  double overlapping = 0;  ///< s in which two or more kernels ran
};

void put(Measurement& result, const std::string& name, double value) {
  result.quantities[name] = {value, 0, 1, "simulation", {}, Provenance::simulated};
}

class IterationModel {
 public:
  IterationModel(const Gpu& gpu, std::size_t kernels) : gpu_(gpu), kernels_(kernels) {}

  Round run_all(const std::vector<SimulatedLaunch>& launches, double core_mhz, double memory_mhz) {
    round_ = {};
    round_.kernel_seconds.resize(kernels_);
    if (launches.size() == 1 && launches.front().launch.launches == 1) {
      static_cast<State&>(round_) = run(gpu_, launches.front().work, launches.front().resident, core_mhz, memory_mhz);
      round_.kernel_seconds[launches.front().launch.kernel] = round_.seconds;
      return round_;
    }
    for (std::size_t begin = 0, end = 0; begin < launches.size(); begin = end) {
      while (end < launches.size() && launches[end].launch.section == launches[begin].launch.section) ++end;
      section({launches.begin() + static_cast<std::ptrdiff_t>(begin), end - begin}, core_mhz, memory_mhz);
    }
    round_.watts = gpu_.idle + above_idle_ / round_.seconds;
    round_.temperature = gpu_.ambient + gpu_.resistance * round_.watts;
    above_idle_ = 0;
    return round_;
  }

 private:
  void section(std::span<const SimulatedLaunch> launches, double core_mhz, double memory_mhz) {
    std::map<std::size_t, double> lanes;
    std::vector<double> alone(kernels_, 0.0);
    double compute = 0, memory = 0;
    for (const SimulatedLaunch& launch : launches) {
      const double share = launch.multiprocessors > 0 ? launch.multiprocessors / gpu_.multiprocessors : 1;
      const State one =
          run(share < 1 ? gpu_.part(launch.multiprocessors) : gpu_, launch.work, launch.resident, core_mhz, memory_mhz);
      const auto count = static_cast<double>(launch.launch.launches);
      lanes[launch.launch.queue] += count * one.seconds;
      alone[launch.launch.kernel] += count * one.seconds;
      compute += count * one.compute * share;  // share of the whole device
      memory += count * one.memory;
      above_idle_ += count * one.seconds * (one.watts - gpu_.idle);
    }
    std::vector<double> lengths;
    for (const auto& [queue, seconds] : lanes) lengths.push_back(seconds);
    std::sort(lengths.rbegin(), lengths.rend());
    double seconds = lengths.front();
    if (lengths.size() > 1)
      seconds =
          std::max(seconds, std::pow(std::pow(compute, kSharpness) + std::pow(memory, kSharpness), 1 / kSharpness));
    const double stretch = seconds / lengths.front();
    for (std::size_t k = 0; k < kernels_; ++k) round_.kernel_seconds[k] += alone[k] * stretch;
    if (lengths.size() > 1) round_.overlapping += lengths[1] * stretch;
    round_.seconds += seconds;
  }

  const Gpu& gpu_;
  std::size_t kernels_;
  Round round_;
  double above_idle_ = 0;  ///< J
};

}  // namespace

struct SimulatedDevice::State {
  State(DeviceProfile p, const Problem& requested, std::vector<Parameter> parameters, const SimulationOptions& o)
      : profile(std::move(p)), gpu(profile), problem(requested), options(o) {
    problem.parameters = std::move(parameters);
    constants = problem.constants_for(profile.name, profile.properties);
    for (std::size_t k = 0; k < problem.kernels.size(); ++k) kernels.emplace_back(profile, problem, k);
  }
  std::vector<SimulatedLaunch> launches_of(const Configuration& configuration) const;
  std::string refusal(const std::vector<SimulatedLaunch>& launches) const;
  void note_resources(const std::vector<SimulatedLaunch>& launches, Measurement& result) const;
  void note_kernels(const Round& round, Measurement& result) const;

  DeviceProfile profile;
  Gpu gpu;
  Problem problem;
  Constants constants;
  std::vector<KernelModel> kernels;
  SimulationOptions options;
};

std::vector<SimulatedLaunch> SimulatedDevice::State::launches_of(const Configuration& configuration) const {
  std::vector<SimulatedLaunch> launches;
  const auto visit = [&](const IterationLaunch& launch, const Scope& scope, const BufferNames&) {
    SimulatedLaunch one{launch, kernels[launch.kernel].work(configuration, scope)};
    one.resident = resident_blocks(gpu, one.work);
    launches.push_back(one);
  };
  const IterationPlan plan = visit_launches(problem, constants, configuration, visit);
  for (SimulatedLaunch& launch : launches) {
    if (launch.launch.queue == 0) continue;
    const QueueOptions& queue = plan.queues[launch.launch.queue - 1];
    launch.multiprocessors = queue.multiprocessors;
    if (queue.first_multiprocessor + queue.multiprocessors > gpu.multiprocessors) launch.resident = -1;  // refused
  }
  return launches;
}

/// The reason why the device would refuse the launches; empty if it would not.
std::string SimulatedDevice::State::refusal(const std::vector<SimulatedLaunch>& launches) const {
  for (const SimulatedLaunch& launch : launches) {
    const Work& work = launch.work;
    const Kernel& kernel = problem.kernels[launch.launch.kernel];
    if (work.threads > gpu.max_threads_per_block)
      return with_kernel_name(
          kernel, fmt::format("{} threads per block, the device takes {}", work.threads, gpu.max_threads_per_block));
    if (launch.resident < 0)
      return with_kernel_name(
          kernel, fmt::format("there are {} SMs to partition, and the branches request more", gpu.multiprocessors));
    // registers and shared memory are allocated in units, so that no block may fit although the plain sums allow one
    const auto occupancy = occupancy_of({work.threads, work.registers, work.shared_bytes}, profile.properties);
    if (launch.resident < 1 || work.shared_bytes > gpu.shared_per_block || (occupancy && occupancy->share <= 0))
      return with_kernel_name(
          kernel,
          fmt::format(
              "too many resources requested: {} registers per thread, {} bytes of shared memory, {} threads per block",
              work.registers, work.shared_bytes, work.threads));
  }
  return launches.empty() ? "a round of this configuration launches nothing" : "";
}

/// Adds the resources of the code (the maximum over kernels).
void SimulatedDevice::State::note_resources(const std::vector<SimulatedLaunch>& launches, Measurement& result) const {
  double registers = 0, shared = 0, need = 0;
  for (const SimulatedLaunch& launch : launches) {
    registers = std::max(registers, launch.work.registers);
    shared = std::max(shared, launch.work.shared_bytes);
    const auto occupancy =
        occupancy_of({launch.work.threads, launch.work.registers, launch.work.shared_bytes}, profile.properties);
    if (!occupancy) continue;
    need = std::max(need, occupancy->need);
    const std::string& name = problem.kernels[launch.launch.kernel].name;
    put(result, name.empty() ? "occupancy" : "occupancy." + name, occupancy->share);
  }
  put(result, "registers", registers);
  put(result, "shared_bytes", shared);
  if (need > 0) put(result, "block_need", need);
}

/// Adds the quantities of each kernel.
void SimulatedDevice::State::note_kernels(const Round& round, Measurement& result) const {
  if (!problem.has_named_kernels()) return;
  for (std::size_t k = 0; k < problem.kernels.size(); ++k)
    put(result, "time." + problem.kernels[k].name, round.kernel_seconds[k]);
  put(result, "overlap", round.overlapping / round.seconds);
}

SimulatedDevice::SimulatedDevice(DeviceProfile profile, const Problem& problem, std::vector<Parameter> parameters,
                                 const SimulationOptions& options)
    : state_(std::make_unique<State>(std::move(profile), problem, std::move(parameters), options)) {}
SimulatedDevice::SimulatedDevice(SimulatedDevice&&) noexcept = default;
SimulatedDevice::~SimulatedDevice() = default;

const DeviceProfile& SimulatedDevice::profile() const { return state_->profile; }

Measurement SimulatedDevice::truth(const Configuration& configuration) const {
  const Gpu& gpu = state_->gpu;
  Measurement result;
  result.compile_seconds = state_->options.compile_seconds;
  const std::vector<SimulatedLaunch> launches = state_->launches_of(configuration);
  state_->note_resources(launches, result);
  if (std::string refusal = state_->refusal(launches); !refusal.empty()) {
    result.status = Status::launch_error;
    result.message = std::move(refusal);
    return result;
  }
  double requested = gpu.boost_mhz, memory = gpu.memory_mhz, limit = gpu.limit;
  bool is_requested = false;
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    switch (state_->problem.parameters[i].kind) {
      case ParameterKind::core_clock_mhz:
        requested = configuration[i].as_real();
        is_requested = true;
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
  IterationModel model(gpu, state_->kernels.size());
  double ran = requested;
  Round round = model.run_all(launches, ran, memory);
  if (round.watts > limit) {
    double low = 1, high = requested;
    for (int i = 0; i < 50; ++i) {
      const double middle = 0.5 * (low + high);
      (model.run_all(launches, middle, memory).watts > limit ? high : low) = middle;
    }
    ran = low;
    round = model.run_all(launches, ran, memory);
    if (is_requested)  // as on a real device, where the driver's own choice is no request
      result.warnings.push_back(fmt::format("asked {:.0f} MHz, ran {:.0f} MHz, power cap", requested, ran));
  }
  put(result, "time", round.seconds);
  put(result, "power", round.watts);
  put(result, "energy", round.watts * round.seconds);
  put(result, "core_clock", ran * 1e6);
  put(result, "memory_clock", memory * 1e6);
  put(result, "temperature", round.temperature);
  state_->note_kernels(round, result);
  result.measure_seconds = state_->options.launches * round.seconds + state_->options.energy_seconds;
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
  scale("energy", time_factor * power_factor, std::hypot(state_->options.time_noise, state_->options.power_noise));
  return result;
}

}  // namespace ergotune
