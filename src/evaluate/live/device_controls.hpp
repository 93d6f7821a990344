// The execution parameters (clocks, power limit) of one slot: in which order waiting configurations change
// them as seldom as possible, bringing a setting in force, and what there is to say of the clock that then
// ran.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/evaluator.hpp"
#include "measure/execution_parameters.hpp"
#include "measure/runner.hpp"
#include "power/guardian/guardian.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// Used by one thread at a time. Its end puts everything back.
class DeviceControls {
 public:
  /// Those of `parameters` (the space's, in order) that are not code are set through `session`.
  DeviceControls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters);

  /// "tegra".
  std::string id() const { return session_->control().id(); }
  ControlSetting setting_of(const Configuration& configuration) const {
    return ergotune::setting_of(parameters_, configuration);
  }
  /// Positions of `waiting`, those of the setting in force first, or those of `first` where it is given.
  std::vector<std::size_t> order(const std::vector<ControlSetting>& waiting,
                                 const ControlSetting* first = nullptr) const {
    return order_by_setting(waiting, first ? *first : session_->current());
  }
  /// Takes one out of a queue that is not empty: of those with the setting in force, while there are any, the oldest.
  EvaluationRequest next_of(std::deque<EvaluationRequest>& queue) const;
  /// Before the first change: the board is to be looked at under load, because another process's lock may only show
  /// then.
  bool must_look() const { return !looked_; }
  /// What it showed. Throws UserError for another process's lock, unless the session takes it over.
  void look(const Measurement& under_load);
  /// Brings a setting in force. Where the hardware refuses it: the status of every configuration that asks
  /// for it (unsupported for an invalid value or pair; launch_error for the rest, which is disturbed()). Throws
  /// UserError when nothing can be set any more.
  std::optional<Measurement> apply(const ControlSetting& setting);
  /// What the runner has to watch, and what to wait for.
  void prepare(RunOptions& run, const ControlSetting& setting) const;
  /// Compares what was asked for with what is set and with the clocks that ran. True: it ran under something else, and
  /// is to be run again, for which the setting is made again. When that was done (`again`) it becomes a failure without
  /// numbers. A clock that the power limit holds down is a part of the setting and told in a warning: "asked 1410 MHz,
  /// ran 1275 MHz, power cap". Adds also what the session has to tell since. Throws UserError when the device is lost.
  bool judge(const ControlSetting& asked, Measurement& measurement, bool again);

  /// All of the above for one configuration in this thread: looks at the board first where that is due, sets, measures
  /// by `once`, judges, and measures again where it ran elsewhere. `dropped`: the result is no longer wanted.
  Measurement measure(
      const Configuration& configuration, const std::function<Measurement(const ControlSetting&)>& once,
      const std::function<bool()>& dropped = [] { return false; });
  /// The last failure of apply(), judge() or measure() is one of the device's conditions (EvaluationResult::disturbed).
  bool disturbed() const { return disturbed_; }

 private:
  void await(const ControlSetting& setting);
  void require_device() const;
  std::string ran_elsewhere(const ControlSetting& asked, Measurement& measurement);
  std::string above_limit(const ControlSetting& asked, const Measurement& measurement) const;

  std::unique_ptr<ControlSession> session_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<DeviceMonitor> monitor_;
  std::optional<ControlSetting> in_force_;
  std::optional<double> latency_;  ///< s, of the last change; told once
  double set_at_ = 0;              ///< host time of a change that was not seen in force yet
  bool looked_ = false, told_unwatched_ = false, disturbed_ = false;
  std::string pending_note_;
  std::size_t notes_seen_;  ///< whoever opened the session has told those before
};

}  // namespace ergotune
