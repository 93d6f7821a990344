// What is measured: a round of one or more launches of one or more kernels. One round is the unit of time and
// energy; a single kernel is a workload of one.
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
  /// Queues so many rounds, each beginning when the one before has ended; returns without waiting. Markers
  /// that are recorded into the device's main queue before and after enclose them. Throws DeviceError.
  virtual void launch(std::size_t rounds) = 0;
  /// From here on launch() queues as many rounds as one graph, with nothing between them; 0: no longer. False where the
  /// device does not take them down as one, or they are too many.
  virtual bool prepare(std::size_t rounds) {
    static_cast<void>(rounds);
    return false;
  }
};

/// One kernel's part in a round.
struct WorkloadStep {
  std::size_t kernel = 0;    ///< its place in the workload's list
  std::size_t queue = 0;     ///< 0: the device's main one; others are the workload's own
  std::size_t launches = 1;  ///< back to back
  /// Steps of one section follow each other in the list; a section begins when the one before has ended on every queue.
  std::size_t section = 0;
  std::size_t branch = 0;  ///< where it stands when nothing runs side by side
};

/// Rounds of kernels that are loaded and bound. Steps on one queue run in their order, queues run side by
/// side: each section forks from the main queue and joins it again.
class KernelWorkload : public Workload {
 public:
  /// The kernels must live longer; `queues` says what those beside the main one are like. Throws Error for a step whose
  /// kernel is not in the list, DeviceError for a queue that the device does not make.
  KernelWorkload(Device& device, std::vector<LoadedKernel*> kernels, std::vector<WorkloadStep> steps,
                 const std::vector<QueueOptions>& queues = {});
  /// A round is one launch.
  KernelWorkload(Device& device, LoadedKernel& kernel) : KernelWorkload(device, {&kernel}, {WorkloadStep{}}) {}
  KernelWorkload(const KernelWorkload&) = delete;
  KernelWorkload& operator=(const KernelWorkload&) = delete;
  ~KernelWorkload() override;
  void launch(std::size_t rounds) override;
  bool prepare(std::size_t rounds) override;

  const std::vector<WorkloadStep>& steps() const { return steps_; }
  /// Queues one round, `mark` called before and after each step with the step's position and its queue (null: the
  /// main one).
  using Mark = std::function<void(std::size_t step, bool after, Queue* queue)>;
  void launch_marked(const Mark& mark);
  /// The step that was last queued in the first round: the one at fault where that was refused.
  std::size_t last_step() const { return last_step_; }

 private:
  /// Steps on one queue in one section.
  struct Lane {
    Queue* queue = nullptr;
    std::size_t side = 0;  ///< 0: main; else queues_[side - 1]
    std::vector<LaunchRun> runs;
    std::vector<std::size_t> steps;
  };
  struct Section {
    /// In the order in which their first steps stand.
    std::vector<Lane> lanes;
    bool forks() const { return lanes.size() > 1 || lanes.front().side > 0; }
  };
  void arrange();
  void launch_round(const Mark* mark = nullptr);
  void launch_section(Section& section, const Mark* mark);
  void launch_gated(std::size_t rounds);
  bool launch_graphs(std::size_t& rounds);
  void launch_long_graphs(std::size_t& rounds);

  Device& device_;
  std::vector<LoadedKernel*> kernels_;
  std::vector<WorkloadStep> steps_;
  std::vector<Section> sections_;
  /// Those beside the main one, with the markers at which they join it.
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Marker>> joins_;
  std::unique_ptr<Marker> fork_;
  /// One round, and several, as the device has taken them down.
  std::unique_ptr<LaunchGraph> graph_, long_graph_;
  std::size_t rounds_of_long_ = 0, last_step_ = 0;
  bool ran_ = false, requested_ = false, recordable_ = true;
};

}  // namespace ergotune
