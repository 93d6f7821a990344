// The execution parameters (clocks, power limit) of one device: orders waiting configurations so that settings change
// as seldom as possible, applies settings, and checks the clocks that a configuration ran at.
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

/// Not thread-safe. The destructor restores all settings.
class DeviceControls {
 public:
  /// Applies the execution parameters among `parameters` (those of the space, in its order) through `session`.
  DeviceControls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters);

  /// The control's id, such as "tegra".
  std::string id() const { return session_->control().id(); }
  ControlSetting setting_of(const Configuration& configuration) const {
    return ergotune::setting_of(parameters_, configuration);
  }
  /// Positions of `waiting` in the order to run: those with the current setting first, or with `first` if given.
  std::vector<std::size_t> order(const std::vector<ControlSetting>& waiting,
                                 const ControlSetting* first = nullptr) const {
    return order_by_setting(waiting, first ? *first : session_->current());
  }

  /// Each run of a configuration is enclosed by begin() and end(); end() may request another run.
  ///
  /// begin() applies the setting and tells the runner through `run` what to watch. Before the first change it only
  /// requests an observation of the device under load, since another process's clock lock may be visible only then. If
  /// the hardware refuses the setting, returns the result for every configuration with that setting (unsupported for an
  /// invalid value or pair; launch_error otherwise, in which case disturbed() is true). Throws UserError if nothing can
  /// be set any more.
  std::optional<Measurement> begin(const ControlSetting& setting, RunOptions& run);
  /// Compares the requested setting with the applied one and with the clocks during the run. Returns true if the
  /// configuration has to run (again), because it ran under another setting or the run was the initial observation. If
  /// `repeated` was set already, the measurement becomes a failure without values instead. A clock held down by the
  /// power limit is accepted as part of the setting and reported in a warning: "asked 1410 MHz, ran 1275 MHz, power
  /// cap". New notes of the session are added. Throws UserError if the device is lost, and for another process's clock
  /// lock unless the session takes over.
  bool end(const ControlSetting& setting, const RunOptions& run, Measurement& measurement, bool& repeated);
  /// Whether the last failure of begin() or end() is one of the device (EvaluationResult::disturbed).
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
  std::map<ControlSetting, double> memory_ran_;  ///< MHz, by settings that do not set the memory clock
  std::optional<double> latency_;                ///< s until the last change took effect; reported once
  double set_at_ = 0;                            ///< host time of a change that has not taken effect yet
  bool looked_ = false, noted_unwatched_ = false, disturbed_ = false;
  std::string pending_note_;
  std::size_t notes_seen_;  ///< earlier notes were reported when the session was opened
};

}  // namespace ergotune
