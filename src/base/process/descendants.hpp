// What a process has started, as the system tells it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace ergotune {

/// All processes below `pid`, parents before their children, at one moment: including those that ended without being
/// waited for. Orphans are not among them, unless their reaper is.
std::vector<pid_t> descendants_of(pid_t pid);

}  // namespace ergotune
