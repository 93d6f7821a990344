// The kernels of one configuration, loaded and bound for each launch of an iteration, and the workloads made of them.
// Also the time of each kernel in such a workload.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "kernel/round.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

struct Kernel;
struct Problem;

class LoadedIteration {
 public:
  /// Takes one binary for each of the problem's kernels. All arguments except the binaries must outlive the object.
  /// Throws DeviceError, and UserError for an expression that cannot be evaluated.
  LoadedIteration(Device& device, const Problem& problem, const Constants& constants, ProblemBuffers& buffers,
                  const Configuration& configuration, std::span<const Binary> binaries);

  Workload& workload() { return *workload_; }
  KernelWorkload& kernels() { return *workload_; }
  /// True if kernels run concurrently.
  bool concurrent() const { return !plan_.queues.empty(); }
  /// The same launches without concurrency, branches in the order in which they are written.
  Workload& in_sequence();
  /// The steps of in_sequence(): those of kernels() without queues.
  const std::vector<WorkloadStep>& steps_in_sequence();
  /// The bound kernel that a step launches.
  LoadedKernel& bound_kernel(const WorkloadStep& step) { return *loaded_[step.kernel]; }
  /// Whether launches change what they read and no buffer of the problem holds.
  bool changes_own_inputs() const;
  bool needs_reset() const;
  void reset_own_inputs();
  /// The first launch of a kernel in the iteration.
  struct FirstLaunch {
    std::size_t bound = 0;  ///< WorkloadStep::kernel of that launch
    BufferNames names;
    std::map<std::string, Value> variables;  ///< variables of the enclosing loops; all others are 0
  };
  /// Returns nullptr for a kernel that is not launched.
  const FirstLaunch* first_launch(std::size_t kernel) const;
  /// Index in Problem::kernels of a step's kernel.
  std::size_t kernel_of(std::size_t step) const { return kernel_of_[step]; }
  /// The kernel that was queued last in the first iteration.
  const Kernel& last_kernel() const;
  /// Adds the resources of the compiled code (the maximum over several kernels), the occupancy of each kernel and the
  /// remarks on them.
  void note_resources(Measurement& result) const;

 private:
  void load(std::span<const Binary> binaries);
  std::size_t bound(std::span<const Binary> binaries, const IterationLaunch& launch, const Scope& scope,
                    const BufferNames& names);
  void note_first(std::size_t kernel, std::size_t bound, const Scope& scope, const BufferNames& names);
  void note_occupancy(std::size_t kernel, Measurement& result) const;

  Device& device_;
  const Problem& problem_;
  const ProblemBuffers& buffers_;
  /// One per kernel, followed by kernels that are bound differently. `by_use_` finds them by kernel, geometry and
  /// arguments.
  std::vector<std::unique_ptr<LoadedKernel>> loaded_;
  /// Sum over all kernels; empty if one of them has no counts.
  std::map<std::string, double> instructions_;
  std::string instructions_from_;
  std::vector<bool> taken_;               ///< by kernel: loaded_ at this index is bound
  std::vector<LaunchGeometry> geometry_;  ///< of the first launch of each kernel
  std::map<std::string, std::size_t> by_use_;
  std::vector<WorkloadStep> steps_;
  std::vector<std::size_t> kernel_of_;
  std::map<std::size_t, FirstLaunch> first_launches_;  ///< by kernel
  std::vector<WorkloadStep> sequence_steps_;
  IterationPlan plan_;
  std::unique_ptr<KernelWorkload> workload_, sequence_;
};

/// Time in s for iterations with markers around each launch; a few iterations suffice.
inline constexpr double kKernelTimesSeconds = 0.5;

/// Adds "time.NAME" for each kernel (device time of its launches, including waiting for free SMs) and "overlap" (the
/// share of the busy time in which two or more kernels ran), from separate iterations that take at most `seconds`, but
/// at least three iterations.
void measure_kernel_times(Device& device, LoadedIteration& round, const Problem& problem, double seconds,
                          Measurement& result);

}  // namespace ergotune
