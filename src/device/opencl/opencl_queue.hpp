// In-order queues of OpenCL commands, and markers between commands.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device/opencl/opencl_platform.hpp"

namespace ergotune::opencl {

/// Reference-counted handle of a queued command.
class Event {
 public:
  /// Takes ownership of a reference. A gate is not a command and has no times.
  explicit Event(cl_event event, bool is_gate = false) : event_(event), is_gate_(is_gate) {}
  Event(const Event& other) : event_(other.event_), is_gate_(other.is_gate_) {
    if (event_) api().clRetainEvent(event_);
  }
  Event& operator=(Event other) noexcept {
    std::swap(event_, other.event_);
    is_gate_ = other.is_gate_;
    return *this;
  }
  ~Event() {
    if (event_) api().clReleaseEvent(event_);
  }
  cl_event get() const { return event_; }
  bool is_gate() const { return is_gate_; }
  /// Throws DeviceError(runtime) if the command failed.
  bool complete() const;
  /// Returns CL_PROFILING_COMMAND_START or _END in ns on the device's clock.
  double profile(cl_uint name) const;

 private:
  cl_event event_ = nullptr;
  bool is_gate_ = false;
};

class OpenclQueue;

/// A marker is not a command, which would cost time and has no profile with some drivers: it is between the last
/// commands before it and the first ones after it. There is one of each, except if queues wait for each other: then
/// commands of the other queues count, too.
struct OpenclMarker : Marker {
  std::vector<Event> before;
  std::shared_ptr<std::vector<Event>> after;  ///< filled when those commands are queued
  OpenclQueue* queue = nullptr;               ///< where it was recorded; nullptr: not recorded yet
  std::uint64_t sequence = 0;                 ///< number of commands queued there before it
  /// The commands in `before` have started after the first `forked_at` commands of `forked_from`.
  const OpenclQueue* forked_from = nullptr;
  std::uint64_t forked_at = 0;

  bool passed() const;
};
/// Returns the device time in s; 0 if nothing was queued between the markers.
double seconds_between(const OpenclMarker& start, const OpenclMarker& stop);

class OpenclQueue : public Queue {
 public:
  /// `all`: the device's list of existing queues. An `owned` queue is released with the object.
  OpenclQueue(cl_command_queue queue, bool owned, std::vector<OpenclQueue*>& all);
  OpenclQueue(const OpenclQueue&) = delete;
  OpenclQueue& operator=(const OpenclQueue&) = delete;
  ~OpenclQueue() override;

  void* native_handle() const override { return queue_; }
  cl_command_queue get() const { return queue_; }
  /// True if a marker needs the event of the next command; events cost time.
  bool awaited() const { return !heads_.empty(); }
  /// Must be called for each queued command; the last of a run must have an event.
  void queued(Event event);
  void queued_without_event() { ++sequence_; }
  void record(OpenclMarker& marker);
  void wait(const OpenclMarker& marker);
  /// Work queued from now on starts after the gate has opened.
  void wait_for_gate(const Event& gate);
  /// Waits until the queue is empty. Throws DeviceError(runtime) if a kernel faulted.
  void finish();

 private:
  cl_command_queue queue_;
  bool owned_;
  std::vector<OpenclQueue*>& all_;
  std::vector<Event> tail_;             ///< once these are complete, all queued commands are
  std::vector<std::uint64_t> tail_at_;  ///< the sequence number of each
  struct Fork {
    const OpenclQueue* queue = nullptr;
    std::uint64_t at = 0;
  };
  Fork waits_for_, started_after_;  ///< of the next command; of the commands in tail_
  /// Receivers of the next command's event; the newest markers share `fresh_`, the last of them.
  std::vector<std::shared_ptr<std::vector<Event>>> heads_;
  std::shared_ptr<std::vector<Event>> fresh_;
  std::uint64_t sequence_ = 0;  ///< number of commands queued so far
  void drop_tail(std::uint64_t up_to);
};

}  // namespace ergotune::opencl
