// Drivers that end the process which uses them, for verbs that say what works on a machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"

namespace ergotune::device {

/// Lists the devices of all backends in a process of its own, which `command`, the `ergotune` command, becomes. A
/// backend whose driver ends that process, or does not answer, is absent from list_devices() of this process from now
/// on, with a note of what happened. Returns the names of these backends; none if the process cannot be started.
std::vector<std::string> leave_out_crashing_drivers(const std::string& command);

/// The arguments after "ergotune" with which that process is started, followed by the names of backends to leave out.
inline constexpr std::string_view kTrialVerb = "version", kTrialOption = "--try-without";
/// The work of that process: prints the name of each backend before its devices are listed.
void try_drivers(const std::string& without);

/// Returns why list_devices() does not ask a backend for its devices; empty if it does.
std::string left_out(std::string_view backend);

}  // namespace ergotune::device
