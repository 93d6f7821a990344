// Workloads: iterations of one or more launches of one or more kernels. An iteration is the unit of time and energy; a
// single kernel is a workload of one launch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

class Workload {
 public:
  virtual ~Workload() = default;
  /// Queues `rounds` iterations, each of which begins when the previous one has ended; returns without waiting. Markers
  /// recorded in the device's main queue before and after the call enclose them. Throws DeviceError.
  virtual void launch(std::size_t rounds) = 0;
  /// From now on, launch() queues `rounds` iterations as one graph without gaps; 0: no longer. Returns false if the
  /// device cannot record them as a graph, or if they are too many.
  virtual bool prepare(std::size_t rounds) {
    static_cast<void>(rounds);
    return false;
  }
};

/// One launch, or several back to back, in an iteration.
struct WorkloadStep {
  std::size_t kernel = 0;    ///< index in the workload's list of kernels
  std::size_t queue = 0;     ///< 0: the device's main queue; others belong to the workload
  std::size_t launches = 1;  ///< number of launches back to back
  /// The steps of a section are adjacent in the list; a section begins when the previous one has ended on every queue.
  std::size_t section = 0;
  std::size_t branch = 0;  ///< number of the branch, for running the branches one after the other
};

/// A workload of loaded and bound kernels. Steps on one queue run in order, and queues run concurrently: each section
/// forks from the main queue and joins it again.
class KernelWorkload : public Workload {
 public:
  /// The kernels must outlive the workload; `queues` holds the options of the queues other than the main one. Throws
  /// Error for a step whose kernel is not in the list, and DeviceError for a queue that the device cannot create.
  KernelWorkload(Device& device, std::vector<LoadedKernel*> kernels, std::vector<WorkloadStep> steps,
                 const std::vector<QueueOptions>& queues = {});
  /// Creates a workload in which an iteration is one launch.
  KernelWorkload(Device& device, LoadedKernel& kernel) : KernelWorkload(device, {&kernel}, {WorkloadStep{}}) {}
  KernelWorkload(const KernelWorkload&) = delete;
  KernelWorkload& operator=(const KernelWorkload&) = delete;
  ~KernelWorkload() override;
  void launch(std::size_t rounds) override;
  bool prepare(std::size_t rounds) override;

  const std::vector<WorkloadStep>& steps() const { return steps_; }
  /// Queues one iteration and calls `mark` before and after each step with the step's index and its queue (null: the
  /// main queue).
  using Mark = std::function<void(std::size_t step, bool after, Queue* queue)>;
  void launch_marked(const Mark& mark);
  /// Index of the step that was queued last in the first iteration; if a launch was refused, the one at fault.
  std::size_t last_step() const { return last_step_; }

 private:
  /// The steps on one queue within a section.
  struct Lane {
    Queue* queue = nullptr;
    std::size_t side = 0;  ///< 0: the main queue; else queues_[side - 1]
    std::vector<LaunchRun> runs;
    std::vector<std::size_t> steps;
  };
  struct Section {
    /// In the order of their first steps.
    std::vector<Lane> lanes;
    bool forks() const { return lanes.size() > 1 || lanes.front().side > 0; }
  };
  void arrange();
  void launch_round(const Mark* mark = nullptr);
  void launch_section(Section& section, const Mark* mark);
  void launch_held(std::size_t rounds);
  bool launch_graphs(std::size_t& rounds);
  void launch_long_graphs(std::size_t& rounds);

  Device& device_;
  std::vector<LoadedKernel*> kernels_;
  std::vector<WorkloadStep> steps_;
  std::vector<Section> sections_;
  /// The queues other than the main one, and the markers at which they join it.
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Marker>> joins_;
  std::unique_ptr<Marker> fork_;
  /// Graphs of one iteration and of several, as recorded by the device.
  std::unique_ptr<LaunchGraph> graph_, long_graph_;
  std::size_t rounds_of_long_ = 0, last_step_ = 0;
  bool ran_ = false, requested_ = false, recordable_ = true;
};

}  // namespace ergotune
