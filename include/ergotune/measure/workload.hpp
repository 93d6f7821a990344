// What is measured: a round of one or more launches of one or more kernels. One round is the unit of time and
// energy; a single kernel is a workload of one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ergotune/device/device.hpp"

namespace ergotune {

class Workload {
 public:
  virtual ~Workload() = default;
  /// Queues so many rounds, each beginning when the one before has ended; returns without waiting. Markers
  /// that are recorded into the device's main queue before and after enclose them. Throws DeviceError.
  virtual void launch(std::size_t rounds) = 0;
};

/// One kernel's part in a round.
struct WorkloadStep {
  std::size_t kernel = 0;    ///< its place in the workload's list
  std::size_t queue = 0;     ///< 0: the device's main one; others are the workload's own
  std::size_t launches = 1;  ///< back to back
};

/// Rounds of kernels that are loaded and bound. Steps on one queue run in their order, queues run side by
/// side: each round forks from the main queue and joins it again.
class KernelWorkload : public Workload {
 public:
  /// The kernels must live longer. Throws Error for a step whose kernel is not in the list.
  KernelWorkload(Device& device, std::vector<LoadedKernel*> kernels, std::vector<WorkloadStep> steps);
  /// A round is one launch.
  KernelWorkload(Device& device, LoadedKernel& kernel)
      : KernelWorkload(device, {&kernel}, {WorkloadStep{}}) {}
  KernelWorkload(const KernelWorkload&) = delete;
  KernelWorkload& operator=(const KernelWorkload&) = delete;
  ~KernelWorkload() override;
  void launch(std::size_t rounds) override;

 private:
  void launch_round();

  Device& device_;
  std::vector<LoadedKernel*> kernels_;
  std::vector<WorkloadStep> steps_;
  /// Those beside the main one, with the markers at which they join it.
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Marker>> joins_;
  std::unique_ptr<Marker> fork_;
};

}  // namespace ergotune
