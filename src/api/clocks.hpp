// Clocks and limits of this machine: what can be set and what is set, settings that hold for a while, and restoring
// what a session that died has left. `ergotune clocks` and Python.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "power/guardian/guardian.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// One control, and the device behind it. The ranges are those that this user may set, where there are any.
struct ClockStatus {
  std::string id, key;
  std::map<ControlQuantity, ControlRange> ranges;
  std::optional<JournalStatus> journal;
  DeviceState now;
  bool permission = false;
  std::string foreign, problem;
  std::string lease;  ///< of ergotuned: who has it, and what is set; empty: no client
};

/// Of every control, or of the one that is named. Throws UserError where there is no such control, and where controls
/// are forbidden.
std::vector<ClockStatus> clock_status(const std::string& only = {});
/// The document of `ergotune clocks status --json`.
nlohmann::ordered_json clock_status_document(const std::vector<ClockStatus>& devices);

/// The control with this id, or the only one through which something can be set here. Throws UserError where it may not
/// be used, and where there are several.
std::unique_ptr<Control> chosen_control(const std::optional<std::string>& id);

/// Puts the setting into force until the session ends; `purpose` stands in the journal. Throws UserError for a value
/// that the device does not take and for a device that another session holds.
std::unique_ptr<ControlSession> hold_setting(std::unique_ptr<Control> control, const ControlSetting& setting,
                                             bool take_over, const std::string& purpose);

struct RestoredClocks {
  std::vector<RestoreReport> reports;
  std::vector<std::string> in_use;        ///< devices of running sessions, which restore what they set
  std::vector<JournalStatus> unfinished;  ///< of sessions that have ended and whose guardians are still restoring
  bool complete() const;
};
/// Restores what sessions that died have left.
RestoredClocks restore_clocks();
/// The document of `ergotune clocks restore --json`.
nlohmann::ordered_json restored_clocks_document(const RestoredClocks& restored);

}  // namespace ergotune
