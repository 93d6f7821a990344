// The execution parameters (clocks, power limit) of one device: the order of waiting configurations that changes them
// as seldom as possible, bringing a setting in force, and judging the clock that then ran.
#pragma once

#include <map>
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

  /// Every run of a configuration stands between begin() and end(), which may ask for another one.
  ///
  /// begin() brings the setting in force and adds to `run` what the runner has to watch. Before the first change it
  /// only asks for a look at the device under load, because another process's lock may only show then. Where the
  /// hardware refuses the setting: the status of every configuration that asks for it (unsupported for an invalid value
  /// or pair; launch_error for the rest, which is disturbed()). Throws UserError when nothing can be set any more.
  std::optional<Measurement> begin(const ControlSetting& setting, RunOptions& run);
  /// Compares what was requested with what is set and with the clocks that ran. True: it ran under another setting, or
  /// this was the look, and it has to run (again). Once it was `repeated` it becomes a failure without numbers instead.
  /// A clock that the power limit holds down is a part of the setting and reported in a warning: "asked 1410 MHz, ran
  /// 1275 MHz, power cap". Adds also the session's notes since. Throws UserError when the device is lost, and for
  /// another process's lock unless the session takes it over.
  bool end(const ControlSetting& setting, const RunOptions& run, Measurement& measurement, bool& repeated);
  /// The last failure of begin() or end() is one of the device's conditions (EvaluationResult::disturbed).
  bool disturbed() const { return disturbed_; }

 private:
  std::optional<Measurement> apply(const ControlSetting& setting);
  void look(const Measurement& under_load);
  bool judge(const ControlSetting& requested, Measurement& measurement, bool again);
  void await(const ControlSetting& setting);
  void require_device() const;
  std::string ran_elsewhere(const ControlSetting& requested, Measurement& measurement);
  std::string above_limit(const ControlSetting& requested, const Measurement& measurement) const;
  std::string other_memory_clock(const ControlSetting& requested, Measurement& measurement);

  std::unique_ptr<ControlSession> session_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<DeviceMonitor> monitor_;
  std::optional<ControlSetting> in_force_;
  std::map<ControlSetting, double> memory_ran_;  ///< MHz, by settings that leave the memory clock to the driver
  std::optional<double> latency_;                ///< s, of the last change; reported once
  double set_at_ = 0;                            ///< host time of a change that was not seen in force yet
  bool looked_ = false, noted_unwatched_ = false, disturbed_ = false;
  std::string pending_note_;
  std::size_t notes_seen_;  ///< those before were reported when the session was opened
};

}  // namespace ergotune
