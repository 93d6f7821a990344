// Calls observers: hooks around samples and single launches, the thread of `during`, the stream, phases of
// their own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {

/// A hook threw: becomes the configuration's status.
class ObserverError : public Error {
 public:
  ObserverError(const std::string& observer, const std::string& what) : Error("observer " + observer + ": " + what) {}
};

/// Calls `during` of some observers again and again between begin() and end(), from one thread of its own.
class ObserverThread {
 public:
  ObserverThread() = default;
  ~ObserverThread();
  void begin(const std::vector<std::shared_ptr<Observer>>& observers);
  /// Returns when no call is under way. Throws ObserverError for what a call threw.
  void end();
  /// The same after a fault: what a call threw no longer matters.
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
  /// For those that watch the samples of the time measurement.
  RepetitionHooks repetition_hooks() { return hooks(ObserverPhase::repetitions); }
  /// `count` launches, one by one, for those that want them so; `prepare` queues what comes before each.
  void single_launches(Device& device, Workload& workload, std::size_t count, const std::function<void()>& prepare);
  /// Streams launches to the observers that want it, until none wants more or `limit` seconds have passed.
  /// The queue never runs empty in between, but for the pauses that they ask for.
  LaunchStream stream(Device& device, Workload& workload, double round_seconds, double limit);
  /// The phases of those that have one of their own; `prepare` queues what restores the inputs.
  void own_passes(Device& device, Workload& workload, const std::function<void()>& prepare);
  /// Ends the calls of `during` after a fault in between.
  void cancel() { during_.cancel(); }
  /// Their quantities, warnings and verdicts, into the measurement. Where the time measurement `gave_up`,
  /// there was nothing after it.
  void collect(Measurement& measurement, bool gave_up = false);

 private:
  using Observers = std::vector<std::shared_ptr<Observer>>;
  Observers of(ObserverPhase phase) const;
  RepetitionHooks hooks(ObserverPhase phase);
  Observers observers_;
  ObserverThread during_;
};

}  // namespace ergotune
