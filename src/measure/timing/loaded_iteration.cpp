#include "measure/timing/loaded_iteration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/statistics.hpp"
#include "device/entries.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "kernel/occupancy.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {
namespace {

void append(std::string& text, const void* bytes, std::size_t count) {
  text.append(static_cast<const char*>(bytes), count);
}

/// Returns a key; launches with equal keys may share a bound kernel.
std::string use_of(std::size_t kernel, const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) {
  std::string text;
  append(text, &kernel, sizeof kernel);
  append(text, geometry.grid, sizeof geometry.grid);
  append(text, geometry.block, sizeof geometry.block);
  append(text, &geometry.shared_memory_bytes, sizeof geometry.shared_memory_bytes);
  for (const KernelArgument& argument : arguments) {
    append(text, &argument.buffer, sizeof argument.buffer);
    append(text, &argument.local_bytes, sizeof argument.local_bytes);
    append(text, argument.scalar.data(), argument.scalar.size());  // the type determines the length
  }
  return text;
}

std::vector<LoadedKernel*> pointers_to(const std::vector<std::unique_ptr<LoadedKernel>>& kernels) {
  std::vector<LoadedKernel*> pointers;
  for (const auto& kernel : kernels) pointers.push_back(kernel.get());
  return pointers;
}

constexpr std::size_t kLeastRounds = 3, kMostRounds = 10;

struct Interval {
  double begin, end;
};

/// Returns the time in s during which at least `at_least` intervals overlap.
double covered(const std::vector<Interval>& intervals, int at_least) {
  std::vector<std::pair<double, int>> edges;
  for (const Interval& interval : intervals) {
    edges.emplace_back(interval.begin, 1);
    edges.emplace_back(interval.end, -1);
  }
  // Intervals that only touch do not overlap: ends are sorted before beginnings.
  std::ranges::sort(edges);
  double total = 0, before = 0;
  int running = 0;
  for (const auto& [at, change] : edges) {
    if (running >= at_least) total += at - before;
    running += change;
    before = at;
  }
  return total;
}

Quantity quantity_of(const std::vector<double>& samples, const char* method) {
  const TimeEstimate estimate = estimate_time(samples);
  return {estimate.value,       estimate.standard_error, static_cast<std::int64_t>(estimate.count), method, {},
          Provenance::measured, estimate.degrees};
}

}  // namespace

LoadedIteration::LoadedIteration(Device& device, const Problem& problem, const Constants& constants,
                                 ProblemBuffers& buffers, const Configuration& configuration,
                                 std::span<const Binary> binaries)
    : device_(device), problem_(problem), buffers_(buffers) {
  load(binaries);
  buffers.choose(passed_buffers(problem, constants, configuration));
  plan_ = visit_launches(problem, constants, configuration,
                         [&](const IterationLaunch& launch, const Scope& scope, const BufferNames& names) {
                           const std::size_t which = bound(binaries, launch, scope, names);
                           note_first(launch.kernel, which, scope, names);
                           if (!steps_.empty() && steps_.back().kernel == which &&
                               steps_.back().queue == launch.queue && steps_.back().section == launch.section) {
                             steps_.back().launches += launch.launches;
                             return;
                           }
                           steps_.push_back({which, launch.queue, launch.launches, launch.section, launch.branch});
                           kernel_of_.push_back(launch.kernel);
                         });
  if (steps_.empty()) throw UserError("a round of this configuration launches nothing");
  buffers.set_final_names(plan_.names);
  workload_ = std::make_unique<KernelWorkload>(device, pointers_to(loaded_), steps_, plan_.queues);
}

const Kernel& LoadedIteration::last_kernel() const { return problem_.kernels[kernel_of_[workload_->last_step()]]; }

void LoadedIteration::load(std::span<const Binary> binaries) {
  if (binaries.size() != problem_.kernels.size())
    throw Error(
        fmt::format("the problem has {} kernels, but {} binaries came", problem_.kernels.size(), binaries.size()));
  for (std::size_t k = 0; k < binaries.size(); ++k) {
    try {
      loaded_.push_back(device_.load(binaries[k]));
    } catch (const DeviceError& error) {
      throw DeviceError(error.fault(), with_kernel_name(problem_.kernels[k], error.what()), error.native_code());
    }
  }
  for (const Binary& binary : binaries) {
    const auto packed = device::PackedCode::unpack(binary.bytes);
    for (const auto& [name, count] : packed.instructions) instructions_[name] += count;
    instructions_from_ = packed.instructions_from;
    if (packed.instructions.empty()) {
      instructions_.clear();
      break;
    }
  }
  taken_.resize(binaries.size());
  geometry_.resize(binaries.size());
}

/// Returns the index in loaded_ of the kernel that is loaded and bound for a launch.
std::size_t LoadedIteration::bound(std::span<const Binary> binaries, const IterationLaunch& launch, const Scope& scope,
                                   const BufferNames& names) {
  const Kernel& kernel = problem_.kernels[launch.kernel];
  try {
    const LaunchGeometry geometry = make_geometry(kernel.launch, scope);
    const std::vector<KernelArgument> arguments = buffers_.bind(kernel.arguments, scope, names);
    std::string use = use_of(launch.kernel, geometry, arguments);
    if (const auto known = by_use_.find(use); known != by_use_.end()) return known->second;
    std::size_t which = launch.kernel;
    if (taken_[launch.kernel]) {
      which = loaded_.size();
      std::unique_ptr<LoadedKernel> more = loaded_[launch.kernel]->another();
      loaded_.push_back(more ? std::move(more) : device_.load(binaries[launch.kernel]));
    } else {
      taken_[launch.kernel] = true;
      geometry_[launch.kernel] = geometry;
    }
    loaded_[which]->bind(geometry, arguments);
    by_use_.emplace(std::move(use), which);
    return which;
  } catch (const DeviceError& error) {
    throw DeviceError(error.fault(), with_kernel_name(kernel, error.what()), error.native_code());
  } catch (const UserError& error) {
    throw UserError(with_kernel_name(kernel, error.message()), error.place());
  }
}

void LoadedIteration::note_first(std::size_t kernel, std::size_t bound, const Scope& scope, const BufferNames& names) {
  if (!problem_.kernels[kernel].verification || first_launches_.contains(kernel)) return;
  FirstLaunch& first = first_launches_[kernel];
  first.bound = bound;
  first.names = names;
  for (const std::string& variable : loop_variables(problem_)) first.variables[variable] = *scope(variable);
}

const LoadedIteration::FirstLaunch* LoadedIteration::first_launch(std::size_t kernel) const {
  const auto found = first_launches_.find(kernel);
  return found == first_launches_.end() ? nullptr : &found->second;
}

const std::vector<WorkloadStep>& LoadedIteration::steps_in_sequence() {
  if (!sequence_steps_.empty()) return sequence_steps_;
  sequence_steps_ = steps_;
  // Orders the branches by their numbers.
  std::ranges::stable_sort(sequence_steps_, [](const WorkloadStep& a, const WorkloadStep& b) {
    return std::pair(a.section, a.branch) < std::pair(b.section, b.branch);
  });
  for (WorkloadStep& step : sequence_steps_) step.queue = step.section = 0;
  return sequence_steps_;
}

Workload& LoadedIteration::in_sequence() {
  if (!sequence_) sequence_ = std::make_unique<KernelWorkload>(device_, pointers_to(loaded_), steps_in_sequence());
  return *sequence_;
}

bool LoadedIteration::changes_own_inputs() const {
  return std::ranges::any_of(loaded_, [](const auto& kernel) { return kernel->changes_own_inputs(); });
}

bool LoadedIteration::needs_reset() const {
  return std::ranges::any_of(loaded_, [](const auto& kernel) { return kernel->needs_reset(); });
}

void LoadedIteration::reset_own_inputs() {
  for (const auto& kernel : loaded_) kernel->reset_own_inputs();
}

void LoadedIteration::note_resources(Measurement& result) const {
  LoadedKernel::Resources most;
  for (std::size_t k = 0; k < problem_.kernels.size(); ++k) {
    const LoadedKernel::Resources one = loaded_[k]->resources();
    most.registers = std::max(most.registers, one.registers);
    most.shared_bytes = std::max(most.shared_bytes, one.shared_bytes);
    most.local_bytes = std::max(most.local_bytes, one.local_bytes);
    most.spilled_registers = std::max(most.spilled_registers, one.spilled_registers);
    if (taken_[k]) note_occupancy(k, result);
    if (std::string remark = loaded_[k]->remark(); !remark.empty()) result.warnings.push_back(std::move(remark));
  }
  const auto note_resource = [&](const char* name, int value) {
    if (value >= 0)
      result.quantities[name] = {static_cast<double>(value), 0, 1, "compiled code", {}, Provenance::measured};
  };
  note_resource("registers", most.registers);
  note_resource("shared_bytes", most.shared_bytes);
  note_resource("local_bytes", most.local_bytes);
  for (const auto& [name, count] : instructions_)
    result.quantities[name] = {count, 0, 1, "counted in " + instructions_from_, {}, Provenance::measured};
  note_resource("spilled_registers", most.spilled_registers);
}

void LoadedIteration::note_occupancy(std::size_t kernel, Measurement& result) const {
  const Launch& launch = problem_.kernels[kernel].launch;
  if (launch.grid.empty() && launch.global.empty() && launch.block.empty()) return;  // chosen by the application
  const auto occupancy = occupancy_of(loaded_[kernel]->resources(), geometry_[kernel], device_.info().properties,
                                      loaded_[kernel]->resident_blocks());
  if (!occupancy) return;
  Quantity& need = result.quantities["block_need"];
  need = {std::max(need.value, occupancy->need), 0, 1, "compiled code", {}, Provenance::measured};
  const std::string& name = problem_.kernels[kernel].name;
  result.quantities[name.empty() ? "occupancy" : "occupancy." + name] = {occupancy->share,  0,  1,
                                                                         occupancy->method, {}, Provenance::measured};
}

void measure_kernel_times(Device& device, LoadedIteration& round, const Problem& problem, double seconds,
                          Measurement& result) {
  KernelWorkload& workload = round.kernels();
  const std::size_t steps = workload.steps().size();
  MarkerPool markers(device);  // begin and end of the iteration, then two per step
  std::vector<std::vector<double>> times(problem.kernels.size());
  std::vector<double> overlaps;
  double spent = 0;
  for (std::size_t i = 0; i < kMostRounds && (i < kLeastRounds || spent < seconds); ++i) {
    device.record(markers[0]);
    workload.launch_marked([&](std::size_t step, bool after, Queue* queue) {
      device.record(markers[2 + 2 * step + (after ? 1 : 0)], queue);
    });
    device.record(markers[1]);
    device.synchronise();
    spent += device.seconds_between(markers[0], markers[1]);
    std::vector<Interval> intervals(steps);
    std::vector<double> of_kernel(problem.kernels.size(), 0.0);
    for (std::size_t step = 0; step < steps; ++step) {
      const double took = device.seconds_between(markers[2 + 2 * step], markers[3 + 2 * step]);
      const double end = device.seconds_between(markers[0], markers[3 + 2 * step]);
      intervals[step] = {end - took, end};
      of_kernel[round.kernel_of(step)] += took;
    }
    for (std::size_t k = 0; k < times.size(); ++k) times[k].push_back(of_kernel[k]);
    const double busy = covered(intervals, 1);
    overlaps.push_back(busy > 0 ? covered(intervals, 2) / busy : 0.0);
  }
  for (std::size_t k = 0; k < times.size(); ++k)
    if (mean(times[k]) > 0)
      result.quantities["time." + problem.kernels[k].name] =
          quantity_of(times[k], "device events around the kernel's launches, in the mix");
  result.quantities["overlap"] = quantity_of(overlaps, "device events around every launch");
}

}  // namespace ergotune
