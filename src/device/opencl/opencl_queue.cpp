#include "device/opencl/opencl_queue.hpp"

#include <algorithm>
#include <limits>

namespace ergotune::opencl {

bool Event::complete() const {
  cl_int status = CL_COMPLETE;
  check(api().clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
        DeviceFault::runtime, "clGetEventInfo");
  if (status < 0) throw DeviceError(DeviceFault::runtime, "the kernel ended with " + error_name(status), status);
  return status == CL_COMPLETE;
}

double Event::profile(cl_uint name) const {
  cl_ulong nanoseconds = 0;
  check(api().clGetEventProfilingInfo(event_, name, sizeof nanoseconds, &nanoseconds, nullptr), DeviceFault::runtime,
        "clGetEventProfilingInfo");
  return static_cast<double>(nanoseconds);
}

bool OpenclMarker::passed() const {
  return std::ranges::all_of(before, [](const Event& event) { return event.complete(); });
}

double seconds_between(const OpenclMarker& start, const OpenclMarker& stop) {
  if (!start.after || (start.queue == stop.queue && stop.sequence <= start.sequence)) return 0;
  double from = std::numeric_limits<double>::infinity(), to = -from;
  for (const Event& event : *start.after)
    if (event.complete()) from = std::min(from, event.profile(CL_PROFILING_COMMAND_START));
  for (const Event& event : stop.before)
    if (!event.is_gate()) to = std::max(to, event.profile(CL_PROFILING_COMMAND_END));
  return to > from ? (to - from) * 1e-9 : 0;
}

OpenclQueue::OpenclQueue(cl_command_queue queue, bool owned, std::vector<OpenclQueue*>& all)
    : queue_(queue), owned_(owned), all_(all) {
  all_.push_back(this);
}

OpenclQueue::~OpenclQueue() {
  std::erase(all_, this);
  if (!owned_) return;
  api().clFinish(queue_);
  api().clReleaseCommandQueue(queue_);
}

void OpenclQueue::queued(Event event) {
  ++sequence_;
  for (const auto& head : heads_) head->push_back(event);
  heads_.clear();
  fresh_.reset();
  tail_.assign(1, event);
  tail_at_.assign(1, sequence_);
  started_after_ = waits_for_;
}

void OpenclQueue::record(OpenclMarker& marker) {
  if (!fresh_) heads_.push_back(fresh_ = std::make_shared<std::vector<Event>>());
  marker.before = tail_;
  marker.after = fresh_;
  marker.queue = this;
  marker.sequence = sequence_;
  marker.forked_from = started_after_.queue;
  marker.forked_at = started_after_.at;
}

void OpenclQueue::wait(const OpenclMarker& marker) {
  if (!marker.queue || marker.queue == this) return;
  // Drops entries of deleted markers, which would otherwise accumulate in a queue that only waits.
  fresh_.reset();
  std::erase_if(heads_, [](const auto& head) { return head.use_count() == 1; });
  if (std::ranges::find(heads_, marker.after) == heads_.end()) heads_.push_back(marker.after);
  if (marker.before.empty()) return;
  check(api().clFlush(marker.queue->queue_), DeviceFault::runtime, "clFlush");
  std::vector<cl_event> events;
  for (const Event& event : marker.before) events.push_back(event.get());
  check(api().clEnqueueBarrierWithWaitList(queue_, static_cast<cl_uint>(events.size()), events.data(), nullptr),
        DeviceFault::runtime, "clEnqueueBarrierWithWaitList");
  ++sequence_;
  if (marker.forked_from == this) drop_tail(marker.forked_at);
  tail_.insert(tail_.end(), marker.before.begin(), marker.before.end());
  tail_at_.resize(tail_.size(), sequence_);
  waits_for_ = {marker.queue, marker.sequence};
}

/// Drops commands that are complete before those for which the queue now waits; they would accumulate in workloads with
/// kernels on several queues.
void OpenclQueue::drop_tail(std::uint64_t up_to) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tail_.size(); ++i) {
    if (tail_at_[i] <= up_to) continue;
    tail_[kept] = tail_[i];
    tail_at_[kept++] = tail_at_[i];
  }
  tail_.erase(tail_.begin() + static_cast<std::ptrdiff_t>(kept), tail_.end());
  tail_at_.resize(kept);
}

void OpenclQueue::wait_for_gate(const Event& gate) {
  const cl_event event = gate.get();
  check(api().clEnqueueBarrierWithWaitList(queue_, 1, &event, nullptr), DeviceFault::runtime,
        "clEnqueueBarrierWithWaitList");
  tail_.push_back(gate);
  tail_at_.push_back(++sequence_);
}

void OpenclQueue::finish() {
  // many drivers report a fault of a kernel only here, as CL_OUT_OF_RESOURCES
  check(api().clFinish(queue_), DeviceFault::runtime, "the kernel failed while it ran: clFinish");
  for (const Event& event : tail_) event.complete();
}

}  // namespace ergotune::opencl
