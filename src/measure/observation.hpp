// Calls observers: hooks around repetitions, the thread of `during`, and the stream of launches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ergotune/device/device.hpp"
#include "ergotune/measure/observer.hpp"
#include "measure/timing.hpp"

namespace ergotune {

/// A hook threw: becomes the configuration's status.
class ObserverError : public Error {
 public:
  ObserverError(const std::string& observer, const std::string& what)
      : Error("observer " + observer + ": " + what) {}
};

/// Calls `during` of some observers again and again between begin() and end(), from one thread of its own.
class DuringThread {
 public:
  DuringThread() = default;
  ~DuringThread();
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
  bool wants_stream() const;
  /// Some observer watches single repetitions.
  bool wants_repetitions() const;
  void register_configuration(const ObservedConfiguration& configuration);
  /// Hooks for the repetitions of the time measurement.
  RepetitionHooks repetition_hooks();
  /// Streams launches to the observers that want it, until none wants more or `limit` seconds have passed.
  /// The queue never runs empty in between: two chunks are always ahead of the mark that is waited for.
  LaunchStream stream(Device& device, LoadedKernel& kernel, double launch_seconds, double limit);
  /// Ends the calls of `during` after a fault in between.
  void cancel() { during_.cancel(); }
  /// Their quantities, warnings and verdicts, into the measurement.
  void collect(Measurement& measurement);

 private:
  std::vector<std::shared_ptr<Observer>> some(bool streaming) const;
  std::vector<std::shared_ptr<Observer>> observers_;
  DuringThread during_;
};

}  // namespace ergotune
