// Calls the observers of a measurement: hooks around samples and single launches, the thread for `during`, the stream,
// and the observers with phase `own`. The stream keeps the device busy, with marks at intervals.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "measure/timing/timing.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

/// A running stream. Two chunks are always queued ahead of the awaited mark, so that the queue never runs empty as long
/// as the caller queues a chunk after each mark. If the host is too late for that, the device idles; then a mark
/// without launches is added at the end of the gap, so that the gap counts as a pause.
class LaunchStreamer {
 public:
  /// Chunks last about `mark_period` s; an iteration takes about `round_seconds`.
  LaunchStreamer(Device& device, Workload& workload, double mark_period, double round_seconds);

  /// Queues the first mark and the chunks that fill the queue.
  void begin();
  /// Waits for the next mark; returns false if none is outstanding.
  bool next_mark();
  /// Queues a chunk of iterations, followed by a mark.
  void launch_chunk();
  /// True if the device has passed all queued marks.
  bool drained() const { return awaited_ == recorded_; }
  /// Leaves the device idle for `seconds`, then fills the queue again.
  void rest(double seconds);
  const LaunchStream& stream() const { return stream_; }

 private:
  static constexpr std::size_t kAhead = 2;
  // Markers are reused in a ring, so that a long stream needs few of them; the mark before the oldest awaited one is
  // kept to compute the device time between the two.
  static constexpr std::size_t kRing = kAhead + 3;
  void record(std::size_t rounds);
  void fill();
  /// True if all queued work has finished, on a device that runs asynchronously to the host.
  bool ran_empty();

  Device& device_;
  Workload& workload_;
  MarkerPool markers_;
  std::size_t per_mark_;
  double mark_seconds_;
  LaunchStream stream_;
  std::array<std::size_t, kRing> launched_{};  ///< launches before each mark
  std::size_t recorded_ = 0, awaited_ = 0;
  double looked_ = 0;  ///< when the host last saw an outstanding mark
  /// True once the device was seen working while the host continued, so that its queue can run empty.
  bool is_asynchronous_ = false;
};

/// A hook threw an exception; sets the status of the configuration.
class ObserverError : public Error {
 public:
  ObserverError(const std::string& observer, const std::string& what) : Error("observer " + observer + ": " + what) {}
};

/// Calls `during` of some observers repeatedly between begin() and end(), in one separate thread.
class ObserverThread {
 public:
  ObserverThread() = default;
  ~ObserverThread();
  void begin(const std::vector<std::shared_ptr<Observer>>& observers);
  /// Returns when no call is in progress. Throws ObserverError if a call threw.
  void end();
  /// Like end() after a fault: exceptions of calls are ignored.
  void cancel();

 private:
  void loop();
  std::vector<Observer*> observers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool active_ = false, busy_ = false, stop_ = false;
  std::string fault_observer_, fault_;
  std::thread thread_;
};

class Observation {
 public:
  void add(std::shared_ptr<Observer> observer) { observers_.push_back(std::move(observer)); }
  bool empty() const { return observers_.empty(); }
  bool wants(ObserverPhase phase) const { return !of(phase).empty(); }
  void register_configuration(const ObservedConfiguration& configuration);
  /// Hooks for the observers of the time measurement.
  RepetitionHooks repetition_hooks() { return hooks(ObserverPhase::repetitions); }
  /// Performs `count` single launches for observers with phase `launches`; `prepare` queues the work that precedes each
  /// launch.
  void single_launches(Device& device, Workload& workload, std::size_t count, const std::function<void()>& prepare);
  /// Streams launches for observers with phase `stream` until none wants more or `limit` seconds have passed. The queue
  /// never runs empty in between, except for the pauses that observers request.
  LaunchStream stream(Device& device, Workload& workload, double round_seconds, double limit);
  /// Performs the passes of observers with phase `own`; `prepare` queues the restoration of the inputs.
  void own_passes(Device& device, Workload& workload, const std::function<void()>& prepare);
  /// Ends the calls of `during` after a fault.
  void cancel() { during_.cancel(); }
  /// Adds the observers' quantities, warnings and verdicts to the measurement. `gave_up`: the time measurement ended
  /// early, and the phases after it did not take place.
  void collect(Measurement& measurement, bool gave_up = false);

 private:
  using Observers = std::vector<std::shared_ptr<Observer>>;
  Observers of(ObserverPhase phase) const;
  RepetitionHooks hooks(ObserverPhase phase);
  Observers observers_;
  ObserverThread during_;
};

}  // namespace ergotune
