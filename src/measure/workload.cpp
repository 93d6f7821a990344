#include "ergotune/measure/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/base/error.hpp"

namespace ergotune {

KernelWorkload::KernelWorkload(Device& device, std::vector<LoadedKernel*> kernels,
                               std::vector<WorkloadStep> steps)
    : device_(device), kernels_(std::move(kernels)), steps_(std::move(steps)) {
  std::size_t queues = 1;
  for (const WorkloadStep& step : steps_) {
    if (step.kernel >= kernels_.size())
      throw Error(
          fmt::format("a step of the workload asks for kernel {} of {}", step.kernel + 1, kernels_.size()));
    queues = std::max(queues, step.queue + 1);
  }
  for (std::size_t i = 1; i < queues; ++i) {
    queues_.push_back(device_.make_queue());
    joins_.push_back(device_.make_marker());
  }
  if (!queues_.empty()) fork_ = device_.make_marker();
}

KernelWorkload::~KernelWorkload() {
  if (queues_.empty()) return;
  try {
    device_.synchronise();  // a step that failed may have left others running, whose kernels end after this
  } catch (const std::exception&) {
    // whoever waits next is told
  }
}

void KernelWorkload::launch(std::size_t rounds) {
  // One kernel over and over: the device knows how to do that fast.
  if (steps_.size() == 1 && steps_.front().queue == 0) {
    device_.launch(*kernels_[steps_.front().kernel], rounds * steps_.front().launches);
    return;
  }
  for (std::size_t i = 0; i < rounds; ++i) launch_round();
}

void KernelWorkload::launch_round() {
  if (fork_) device_.record(*fork_);
  for (const auto& queue : queues_) device_.wait(*queue, *fork_);
  for (const WorkloadStep& step : steps_) {
    Queue* queue = step.queue == 0 ? nullptr : queues_[step.queue - 1].get();
    device_.launch(*kernels_[step.kernel], step.launches, queue);
  }
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    device_.record(*joins_[i], queues_[i].get());
    device_.wait(device_.main_queue(), *joins_[i]);
  }
}

}  // namespace ergotune
