// User code hooked on the measurement of a configuration. The energy measurement itself is built on these
// hooks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// What an observer may know of the configuration at hand.
struct ObservedConfiguration {
  const std::vector<std::string>* names = nullptr;
  const Configuration* values = nullptr;
  /// Racing: an objective above this cannot win any more (in objective_quantity's unit); 1e300 for none.
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// What a first look found: s per launch. 0 until it is known.
  double expected_launch_seconds = 0;
  /// Launches of kernels in a round; 0 until it is known.
  std::size_t iteration_launches = 0;
};

/// A point of the stream of launches: `launches` had been completed when the host saw the device pass it.
struct LaunchMark {
  double host_time = 0;       ///< s on the axis of host_seconds(); late by at most `host_late`
  double host_late = 0;       ///< s since the host had last looked and not seen it passed
  double device_seconds = 0;  ///< s of device time since the stream's first mark
  std::uint64_t launches = 0;
};

/// A stream of back-to-back launches with a queue that never runs empty. marks.front() is its start (0
/// launches).
struct LaunchStream {
  std::vector<LaunchMark> marks;
  /// s on the host's axis when the first launch was queued.
  double queued_at = 0;
};

/// What an observer is shown of a configuration. In this order: the time measurement, its launches again one
/// by one, a stream of them, and at last what an observer wants for itself. A launch is a round of the
/// workload (measure/timing/workload.hpp).
enum class ObserverPhase {
  /// The samples of the time measurement, each of one or more launches.
  repetitions,
  /// Launches after the time measurement: exactly one between before_start and after_finish. They change no
  /// time.
  launches,
  /// Back-to-back launches for as long as it wants more (energy).
  stream,
  /// passes() launches, each by itself with all inputs restored before it (counters, traces). They change no
  /// time and
  /// no energy: a result named like a quantity that was measured before is left out, with a warning.
  own
};
std::string to_string(ObserverPhase phase);

/// Hooks, in the order they are called. All but `during` run on the measuring thread; `during` is called
/// again and again from a thread of its own between after_start and after_finish, whatever the device. An
/// exception from a hook becomes the configuration's status (runtime_error), with the observer's name.
///
/// before_start, after_start and after_finish are called around each sample, each single launch, or once
/// around a stream, as phase() returns; an observer with a phase of its own gets begin_pass and end_pass
/// instead.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual std::string name() const = 0;
  virtual ObserverPhase phase() const { return ObserverPhase::repetitions; }
  /// Once per configuration, before anything else. Also called again with expected_launch_seconds once that
  /// is known.
  virtual void register_configuration(const ObservedConfiguration&) {}
  /// Before the launches of a sample (or of the stream) are queued.
  virtual void before_start() {}
  /// After they were queued (the stream: after its queue was filled).
  virtual void after_start() {}
  /// While they run.
  virtual void during() {}
  /// After the last of them has finished.
  virtual void after_finish() {}
  /// What was observed over the configuration. A quantity named like one of ours (time) replaces it, unless
  /// it comes from a phase of its own: energy and its time then come from the same launches.
  virtual std::map<std::string, Quantity> results() = 0;
  /// Things to know that are not failures: "power cap".
  virtual std::vector<std::string> warnings() { return {}; }
  /// What the observer makes of the configuration's status: not_converged, unsupported; ok to leave it alone.
  virtual Status verdict(std::string& message) {
    (void)message;
    return Status::ok;
  }

  // Only for observers of a stream.

  /// Asked on the measuring thread each time a mark of the stream is passed: true to go on. The stream also
  /// ends at MeasureOptions::stream_seconds_limit.
  virtual bool wants_more(const LaunchStream& so_far) {
    (void)so_far;
    return false;
  }
  /// Seconds of launches between two marks that the observer would like; 0 for no wish (10 ms are taken).
  virtual double wanted_mark_period() const { return 0; }
  /// Called after wants_more returned true: s for which the queue should run empty before the next launches, so that
  /// their phase against a sensor that sleeps between its windows changes; 0 for no pause. The stream then has two
  /// marks with the same number of launches: the pause.
  virtual double wanted_pause() { return 0; }
  /// The whole stream, once, after after_finish.
  virtual void finished(const LaunchStream&) {}

  // Only for observers with a phase of their own.

  /// Launches that it needs: as many as its counters fit into. Asked before each.
  virtual int passes() { return 1; }
  /// Inputs are restored and the device is idle.
  virtual void begin_pass(int) {}
  /// The launch has ended.
  virtual void end_pass(int) {}
};

}  // namespace ergotune
