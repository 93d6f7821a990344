// Clocks and limits that hold while a program or a process runs, and are restored when it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::cli {

/// Runs the command, with its own standard streams, under the setting. Its exit code; 128 and the signal that ended it.
/// Throws UserError for a setting that is refused, a device that another session holds, and a program that is not
/// there.
int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over);

/// A process of its own that goes on after the command has returned. What constructs it continues there.
class Background {
 public:
  /// Returns in the new process; the first one waits for in_force() and ends then, or ends as the new one does.
  Background();
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Lets the first process end with 0, and leaves its terminal and streams.
  void in_force();

 private:
  int report_ = -1;
};

/// Holds the setting until the process ends or this one gets a signal. Throws UserError as run_at() does, and for a
/// process that does not exist.
void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over,
              Background* background = nullptr);

}  // namespace ergotune::cli
