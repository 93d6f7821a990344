// The execution parameters (clocks, power limit) of one slot: in which order waiting configurations change
// them as seldom as possible, bringing a setting in force, and what there is to say of the clock that then
// ran.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/evaluate/evaluator.hpp"
#include "ergotune/measure/execution_parameters.hpp"
#include "ergotune/power/guardian.hpp"

namespace ergotune {

/// Used by one thread at a time. Its end puts everything back.
class SlotControls {
 public:
  /// Those of `parameters` (the space's, in order) that are not code are set through `session`.
  SlotControls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters)
      : session_(std::move(session)),
        parameters_(std::move(parameters)),
        notes_seen_(session_->notes().size()) {}

  /// "tegra".
  std::string id() const { return session_->control().id(); }
  ControlSetting setting_of(const Configuration& configuration) const {
    return ergotune::setting_of(parameters_, configuration);
  }
  /// Positions of `waiting`, those of the setting in force first.
  std::vector<std::size_t> order(const std::vector<ControlSetting>& waiting) const {
    return order_by_setting(waiting, session_->current());
  }
  /// Brings a setting in force. Where the hardware refuses it: the status of every configuration that asks
  /// for it (unsupported for an invalid value or pair, launch_error for the rest).
  std::optional<Measurement> apply(const ControlSetting& setting);
  /// Adds what the session has to tell since, and where the clock that ran (quantity core_clock) is not the
  /// one asked for "asked 1410 MHz, ran 1275 MHz, power cap".
  void compare(const ControlSetting& asked, Measurement& measurement);

 private:
  std::unique_ptr<ControlSession> session_;
  std::vector<Parameter> parameters_;
  std::optional<ControlSetting> in_force_;
  std::size_t notes_seen_;  ///< whoever opened the session has told those before
};

}  // namespace ergotune
