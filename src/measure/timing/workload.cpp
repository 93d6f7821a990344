#include "measure/timing/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// Number of steps from which a graph pays off: starting a graph takes longer than a smaller number of steps.
constexpr std::size_t kGraphSteps = 64;
/// Number of steps above which recording a graph costs more than it saves.
constexpr std::size_t kMostGraphSteps = 20'000;

}  // namespace

KernelWorkload::KernelWorkload(Device& device, std::vector<LoadedKernel*> kernels, std::vector<WorkloadStep> steps,
                               const std::vector<QueueOptions>& options)
    : device_(device), kernels_(std::move(kernels)), steps_(std::move(steps)) {
  std::size_t queues = 1;
  for (const WorkloadStep& step : steps_) {
    if (step.kernel >= kernels_.size())
      throw Error(fmt::format("a step of the workload asks for kernel {} of {}", step.kernel + 1, kernels_.size()));
    queues = std::max(queues, step.queue + 1);
  }
  for (std::size_t i = 1; i < queues; ++i) {
    queues_.push_back(device_.make_queue(i <= options.size() ? options[i - 1] : QueueOptions()));
    joins_.push_back(device_.make_marker());
  }
  if (!queues_.empty()) fork_ = device_.make_marker();
  // Not all drivers are known to keep recorded kernels on the SMs of their queue: such iterations are queued launch by
  // launch.
  requested_ = std::ranges::any_of(options, [](const QueueOptions& queue) { return queue.multiprocessors > 0; });
  recordable_ = !requested_;
  arrange();
}

KernelWorkload::~KernelWorkload() {
  if (queues_.empty()) return;
  try {
    device_.synchronise();  // after a failed step, kernels may still run that must end before their resources are freed
  } catch (const std::exception&) {
    // ignored: the next wait reports it
  }
}

void KernelWorkload::arrange() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const WorkloadStep& step = steps_[i];
    if (i == 0 || step.section != steps_[i - 1].section) sections_.emplace_back();
    auto& lanes = sections_.back().lanes;
    auto lane = std::ranges::find_if(lanes, [&](const Lane& l) { return l.side == step.queue; });
    if (lane == lanes.end()) {
      lanes.emplace_back();
      lane = lanes.end() - 1;
      lane->side = step.queue;
      lane->queue = step.queue == 0 ? nullptr : queues_[step.queue - 1].get();
    }
    lane->runs.push_back({kernels_[step.kernel], step.launches});
    lane->steps.push_back(i);
  }
}

void KernelWorkload::launch(std::size_t rounds) {
  if (steps_.empty() || rounds == 0) return;
  // Repeated launches of one kernel, which the device can queue efficiently.
  if (steps_.size() == 1 && steps_.front().queue == 0) {
    launch_long_graphs(rounds);
    if (rounds > 0) device_.launch(*kernels_[steps_.front().kernel], rounds * steps_.front().launches);
    return;
  }
  if (launch_graphs(rounds)) return;
  if (queues_.empty())
    for (std::size_t i = 0; i < rounds; ++i) launch_round();
  else
    launch_held(rounds);
}

/// Holds the first iteration back until its last launch is queued; each later iteration waits for the previous one
/// anyway.
void KernelWorkload::launch_held(std::size_t rounds) {
  struct Gate {
    Device& device;
    explicit Gate(Device& d) : device(d) { device.hold(); }
    ~Gate() {
      try {
        device.release();
      } catch (const std::exception&) {
        // ignored: the commands behind the gate report it
      }
    }
  };
  {
    const Gate gate(device_);
    launch_round();
  }
  for (std::size_t i = 1; i < rounds; ++i) launch_round();
}

/// Returns true if nothing is left to queue. Not used for the very first iteration, since drivers load code at the
/// first launch.
bool KernelWorkload::launch_graphs(std::size_t& rounds) {
  if (!ran_ || steps_.size() > kMostGraphSteps) return false;
  if (!requested_) {
    requested_ = true;
    graph_ = device_.record_graph([this] { launch_round(); });
  }
  if (!graph_) return false;
  const std::size_t fitting = kGraphSteps / steps_.size();
  if (fitting > 1 && rounds >= 4 * fitting && rounds_of_long_ == 0) {
    rounds_of_long_ = fitting;
    long_graph_ = device_.record_graph([&] {
      for (std::size_t i = 0; i < fitting; ++i) launch_round();
    });
  }
  launch_long_graphs(rounds);
  for (; rounds > 0; --rounds) device_.launch_graph(*graph_);
  return true;
}

void KernelWorkload::launch_long_graphs(std::size_t& rounds) {
  if (long_graph_)
    for (; rounds >= rounds_of_long_; rounds -= rounds_of_long_) device_.launch_graph(*long_graph_);
}

bool KernelWorkload::prepare(std::size_t rounds) {
  if (rounds == rounds_of_long_ && long_graph_) return true;
  long_graph_.reset();
  rounds_of_long_ = 0;
  std::size_t launches = 0;
  for (const WorkloadStep& step : steps_) launches += step.launches;
  if (!recordable_ || rounds == 0 || launches == 0 || rounds > kMostGraphSteps / launches) return false;
  long_graph_ = device_.record_graph([&] {
    for (std::size_t i = 0; i < rounds; ++i) launch_round();
  });
  recordable_ = long_graph_ != nullptr;
  if (recordable_) rounds_of_long_ = rounds;
  return recordable_;
}

void KernelWorkload::launch_marked(const Mark& mark) { launch_round(&mark); }

void KernelWorkload::launch_round(const Mark* mark) {
  for (Section& section : sections_) launch_section(section, mark);
  ran_ = true;
}

void KernelWorkload::launch_section(Section& section, const Mark* mark) {
  if (section.forks()) {
    device_.record(*fork_);
    for (const Lane& lane : section.lanes)
      if (lane.queue) device_.wait(*lane.queue, *fork_);
  }
  for (const Lane& lane : section.lanes) {
    if (ran_ && !mark) {
      device_.launch_runs(lane.runs, lane.queue);
      continue;
    }
    for (std::size_t i = 0; i < lane.runs.size(); ++i) {
      last_step_ = lane.steps[i];
      if (mark) (*mark)(lane.steps[i], false, lane.queue);
      device_.launch(*lane.runs[i].kernel, lane.runs[i].count, lane.queue);
      if (mark) (*mark)(lane.steps[i], true, lane.queue);
    }
  }
  for (const Lane& lane : section.lanes) {
    if (!lane.queue) continue;
    Marker& join = *joins_[lane.side - 1];
    device_.record(join, lane.queue);
    device_.wait(device_.main_queue(), join);
  }
}

}  // namespace ergotune
