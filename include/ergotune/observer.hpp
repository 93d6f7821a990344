// Observers: user code that is called during the measurement of a configuration. ergotune's own energy measurement is
// an observer, too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// What an observer is given about the configuration being measured.
struct ObservedConfiguration {
  const std::vector<std::string>* names = nullptr;
  const Configuration* values = nullptr;
  /// Racing: a configuration whose value is above this cannot become the best (in the unit of objective_quantity);
  /// 1e300: no bound.
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// Duration of a launch in s according to a first short measurement; 0 until it is known.
  double expected_launch_seconds = 0;
  /// Number of kernel launches in an iteration of the workload; 0 until it is known.
  std::size_t iteration_launches = 0;
};

/// A point in a stream of launches: the host observed at `host_time` that the device had completed `launches` of them.
struct LaunchMark {
  double host_time = 0;       ///< s on the time axis of host_seconds(); late by at most `host_late`
  double host_late = 0;       ///< s since the host last looked and found the point not yet reached
  double device_seconds = 0;  ///< s of device time since the stream's first mark
  std::uint64_t launches = 0;
};

/// A stream of back-to-back launches whose queue never runs empty. marks.front() is its start (0 launches).
struct LaunchStream {
  std::vector<LaunchMark> marks;
  /// Time at which the first launch was queued, s on the time axis of host_seconds().
  double queued_at = 0;
};

/// The part of a measurement that an observer observes. Order: the time measurement, the same launches one by one, a
/// stream of launches, and the launches of observers with phase `own`. A launch means an iteration of the workload
/// (measure/timing/workload.hpp).
enum class ObserverPhase {
  /// The samples of the time measurement, each of one or more launches.
  repetitions,
  /// Launches after the time measurement: exactly one between before_start and after_finish. They do not contribute to
  /// the measured time.
  launches,
  /// Back-to-back launches until wants_more() returns false (energy).
  stream,
  /// passes() separate launches, each with all inputs restored before it (counters, traces). They contribute neither to
  /// time nor to energy: a result with the name of a quantity that was already measured is dropped with a warning.
  own
};

/// Base class of observers. The hooks are declared in the order in which they are called, all on the measuring thread
/// except `during`, which a separate thread calls repeatedly between after_start and after_finish, on every device. An
/// exception from a hook sets the configuration's status to runtime_error, with the observer's name in the message.
///
/// before_start, after_start and after_finish are called around each sample, around each single launch, or once around
/// a stream, depending on phase(). Observers with phase `own` get begin_pass and end_pass instead.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual std::string name() const = 0;
  virtual ObserverPhase phase() const { return ObserverPhase::repetitions; }
  /// Called once per configuration before all other hooks, and again once expected_launch_seconds is known.
  virtual void register_configuration(const ObservedConfiguration&) {}
  /// Called before the launches of a sample (or of the stream) are queued.
  virtual void before_start() {}
  /// Called after the launches were queued (for a stream: after its queue was filled).
  virtual void after_start() {}
  /// Called repeatedly while the launches run.
  virtual void during() {}
  /// Called after the last launch has finished.
  virtual void after_finish() {}
  /// Returns the observed quantities of the configuration. A quantity with the name of a built-in one (such as time)
  /// replaces it, unless the phase is `own`: energy and its time then come from the same launches.
  virtual std::map<std::string, Quantity> results() = 0;
  /// Returns remarks that do not make the measurement a failure, such as "power cap".
  virtual std::vector<std::string> warnings() { return {}; }
  /// Returns the status that the observer assigns to the configuration (not_converged or unsupported), or ok to leave
  /// the status unchanged. `message` receives the reason.
  virtual Status verdict(std::string& message) {
    (void)message;
    return Status::ok;
  }

  // Only called for observers with phase `stream`.

  /// Called on the measuring thread at each mark of the stream; returns true to continue the stream. The stream also
  /// ends at MeasureOptions::stream_seconds_limit.
  virtual bool wants_more(const LaunchStream& so_far) {
    (void)so_far;
    return false;
  }
  /// Returns the preferred time in s between two marks; 0: no preference (10 ms).
  virtual double wanted_mark_period() const { return 0; }
  /// Called after wants_more() returned true. Returns how long in s the queue should run empty before the next
  /// launches, which changes their phase relative to a sensor that sleeps between its measuring windows; 0: no pause. A
  /// pause appears in the stream as two marks with the same number of launches.
  virtual double wanted_pause() { return 0; }
  /// Called once with the complete stream, after after_finish.
  virtual void finished(const LaunchStream&) {}

  // Only called for observers with phase `own`.

  /// Returns the number of launches that the observer needs, such as the number of passes that its counters need.
  /// Called before each pass.
  virtual int passes() { return 1; }
  /// Called when the inputs are restored and the device is idle, before the launch of the pass.
  virtual void begin_pass(int) {}
  /// Called when the launch of the pass has ended.
  virtual void end_pass(int) {}
};

}  // namespace ergotune
