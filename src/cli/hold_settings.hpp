// Clocks and limits that hold while a program or a process runs, and are restored when it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::cli {

/// Runs the command, with its own standard streams, under the setting. Its exit code; 128 and the signal that ended it.
/// Throws UserError for a setting that is refused, a device that another session holds, and a program that is not
/// there.
int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over);

/// Holds the setting until the process ends or this one gets a signal. Throws UserError as run_at() does, and for a
/// process that does not exist.
void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over);

}  // namespace ergotune::cli
