// Holds clocks and limits while a program or process runs, and restores them when it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::cli {

/// The control with this id, or the only usable one if `id` is nullopt. Throws UserError if it must not be used, or if
/// there are several.
std::unique_ptr<Control> chosen_control(const std::optional<std::string>& id);

/// Runs a command with this process's standard streams under the setting. Returns its exit code, or 128 plus the signal
/// that ended it. Throws UserError if the setting is refused, another session holds the device, or the program does not
/// exist.
int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over);

/// Forks a background process that outlives the command. The constructor returns in the new process.
class Background {
 public:
  /// In the original process, waits for in_force() and then throws Exit{0}; if the new process ends before, ends with
  /// its exit code.
  Background();
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Lets the original process end with exit code 0, and detaches from its terminal and streams.
  void in_force();

 private:
  int report_ = -1;
};

/// Holds the setting until `process` ends or this process receives a signal. Throws UserError as run_at() does, and if
/// the process does not exist.
void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over,
              Background* background = nullptr);

}  // namespace ergotune::cli
