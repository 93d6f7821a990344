// Holds clocks and limits while a program or process runs, and restores them when it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/clocks.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune::cli {

/// What tuning found for the control's device: for this program, where `ergotune program` found a setting, else for
/// each kernel; where kernels differ, the highest value of each quantity, so that none runs slower than it was tuned
/// to. Throws UserError where no record of this device has a clock or limit.
ControlSetting setting_of_wisdom(const std::vector<std::string>& sources, const Control& control,
                                 const std::string& program = {});

/// hold_setting(), with its notes printed.
std::unique_ptr<ControlSession> put_into_force(std::unique_ptr<Control> control, const ControlSetting& setting,
                                               bool take_over, const std::string& purpose);

/// Waits until the device runs at a core clock that was just set; the time that it took, if its driver reports that.
std::optional<double> seconds_until_core_clock(ControlSession& session, double mhz);

/// Runs the command, with its own standard streams, under the setting. Its exit code; 128 and the signal that ended it.
/// Throws UserError as put_into_force() does, and for a program that is not there.
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

/// Holds the setting until the process ends or this one gets a signal. `requests`, if not empty, is a FIFO with core
/// clocks in MHz, one a line: each replaces the one before, and the first is printed, as JSON, with the time that it
/// took to be in force. Throws UserError as put_into_force() does, and for a process or FIFO that does not exist.
void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over,
              const std::string& requests = {}, Background* background = nullptr);

}  // namespace ergotune::cli
