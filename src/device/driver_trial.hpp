// Finds drivers that end the process which loads them, for the verbs that report what works on a machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"

namespace ergotune::device {

/// Starts `command` (the `ergotune` command) as a child process that lists the devices of all backends. From now on,
/// list_devices() leaves out a backend whose driver ended the child process or did not answer, and notes the reason.
/// Returns the names of these backends; none if no child process can be started.
std::vector<std::string> leave_out_crashing_drivers(const std::string& command);

/// The arguments after "ergotune" with which that process is started, followed by the names of backends to leave out.
inline constexpr std::string_view kTrialVerb = "version", kTrialOption = "--try-without";
/// The work of that process: prints the name of each backend before its devices are listed.
void try_drivers(const std::string& without);

/// Returns why list_devices() does not ask a backend for its devices; empty if it does.
std::string left_out(std::string_view backend);

}  // namespace ergotune::device
