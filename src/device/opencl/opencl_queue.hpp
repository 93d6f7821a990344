// In-order queues of OpenCL commands, and markers between the commands.
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
  /// Takes over the reference. A gate is no command: it has no times.
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
  /// Throws DeviceError(runtime) when the command failed.
  bool complete() const;
  /// Nanoseconds of CL_PROFILING_COMMAND_START or _END, on the device's clock.
  double profile(cl_uint name) const;

 private:
  cl_event event_ = nullptr;
  bool is_gate_ = false;
};

class OpenclQueue;

/// A marker is not a command of its own, which would cost time and has no profile with some drivers: it lies
/// between the last commands before it and the first ones after it. There is one of each, but for queues that
/// wait for each other: then the others' commands count as well.
struct OpenclMarker : Marker {
  std::vector<Event> before;
  std::shared_ptr<std::vector<Event>> after;  ///< filled when those commands are queued
  OpenclQueue* queue = nullptr;               ///< where it was recorded; nullptr before
  std::uint64_t sequence = 0;                 ///< commands queued there before it
  /// The commands in `before` have started after all that `forked_from` was given up to `forked_at`.
  const OpenclQueue* forked_from = nullptr;
  std::uint64_t forked_at = 0;

  bool passed() const;
};
/// s; 0 where nothing was queued in between.
double seconds_between(const OpenclMarker& start, const OpenclMarker& stop);

class OpenclQueue : public Queue {
 public:
  /// `all` is where its device keeps the queues that live. An `owned` queue is released with the object.
  OpenclQueue(cl_command_queue queue, bool owned, std::vector<OpenclQueue*>& all);
  OpenclQueue(const OpenclQueue&) = delete;
  OpenclQueue& operator=(const OpenclQueue&) = delete;
  ~OpenclQueue() override;

  void* native_handle() const override { return queue_; }
  cl_command_queue get() const { return queue_; }
  /// Whether some marker waits for the next command's event: an event costs time.
  bool awaited() const { return !heads_.empty(); }
  /// Every queued command is reported here, the last of a run always with its event.
  void queued(Event event);
  void queued_without_event() { ++sequence_; }
  void record(OpenclMarker& marker);
  void wait(const OpenclMarker& marker);
  /// What is queued from now on starts after the gate has opened.
  void wait_for_gate(const Event& gate);
  /// Waits until the queue is empty; throws DeviceError(runtime) when a kernel faulted.
  void finish();

 private:
  cl_command_queue queue_;
  bool owned_;
  std::vector<OpenclQueue*>& all_;
  std::vector<Event> tail_;             ///< when these are complete, so is all that was queued
  std::vector<std::uint64_t> tail_at_;  ///< the sequence at which each came
  struct Fork {
    const OpenclQueue* queue = nullptr;
    std::uint64_t at = 0;
  };
  Fork waits_for_, started_after_;  ///< the next command; the commands in tail_
  /// What the next command's event goes to; the newest markers share `fresh_`, which is the last of them.
  std::vector<std::shared_ptr<std::vector<Event>>> heads_;
  std::shared_ptr<std::vector<Event>> fresh_;
  std::uint64_t sequence_ = 0;  ///< commands queued so far
  void drop_tail(std::uint64_t up_to);
};

}  // namespace ergotune::opencl
