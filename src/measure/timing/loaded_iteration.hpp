// One configuration's kernels, loaded and bound for every launch of a round, and the rounds made of them.
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

class LoadedIteration {
 public:
  /// Takes one binary for each of the problem's kernels. All but the binaries must live longer. Throws DeviceError, and
  /// UserError where an expression has no value.
  LoadedIteration(Device& device, const Problem& problem, const Constants& constants, ProblemBuffers& buffers,
                  const Configuration& configuration, std::span<const Binary> binaries);

  Workload& workload() { return *workload_; }
  KernelWorkload& kernels() { return *workload_; }
  /// Whether kernels run side by side in it.
  bool concurrent() const { return !plan_.queues.empty(); }
  /// The same launches one after the other, branches as they are written.
  Workload& in_sequence();
  /// Their steps: those of kernels() without queues.
  const std::vector<WorkloadStep>& steps_in_sequence();
  /// What a step launches, bound.
  LoadedKernel& bound_kernel(const WorkloadStep& step) { return *loaded_[step.kernel]; }
  /// Where a kernel is first launched in the round.
  struct FirstLaunch {
    std::size_t bound = 0;  ///< WorkloadStep::kernel there
    BufferNames names;
    std::map<std::string, Value> variables;  ///< of the loops around it; 0 for all others
  };
  /// nullptr for a kernel that is not launched.
  const FirstLaunch* first_launch(std::size_t kernel) const;
  /// Position in Problem::kernels of a step's kernel.
  std::size_t kernel_of(std::size_t step) const { return kernel_of_[step]; }
  /// The kernel that was queued last in the first round.
  const Kernel& last_kernel() const { return problem_.kernels[kernel_of_[workload_->last_step()]]; }
  /// What the compiled code needs, of several kernels the most, and what share of the device that leaves to each.
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
  /// By kernel, then those that are bound otherwise. `by_use_` finds them by kernel, geometry and arguments.
  std::vector<std::unique_ptr<LoadedKernel>> loaded_;
  /// Of all kernels together; where one of them does not tell, of none.
  std::map<std::string, double> instructions_;
  std::string instructions_from_;
  std::vector<bool> taken_;               ///< by kernel: loaded_ there is bound
  std::vector<LaunchGeometry> geometry_;  ///< of each kernel's first launch
  std::map<std::string, std::size_t> by_use_;
  std::vector<WorkloadStep> steps_;
  std::vector<std::size_t> kernel_of_;
  std::map<std::size_t, FirstLaunch> first_launches_;  ///< by kernel
  std::vector<WorkloadStep> sequence_steps_;
  IterationPlan plan_;
  std::unique_ptr<KernelWorkload> workload_, sequence_;
};

}  // namespace ergotune
