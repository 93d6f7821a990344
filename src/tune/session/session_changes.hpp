// What has changed since a session of a store, for the note that its results are not used.
#pragma once

#include <string>

namespace ergotune {

struct Problem;

/// The device part of session keys: empty if they are equal; else the devices that differ, or else driver and compiler.
std::string device_changes(const std::string& before, const std::string& now);

/// The parts of a problem that determine results and differ: sources by file, other parts by the path of their table.
/// Empty if none of them does: then it is in a file that they read (an included header, data).
std::string problem_changes(const Problem& before, const Problem& now);

}  // namespace ergotune
