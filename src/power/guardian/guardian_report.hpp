// What guardian and session say to each other.
#pragma once

#include <string>

#include "power/guardian/guardian.hpp"

namespace ergotune {

inline constexpr const char* kGuardianReady = "ready\n";

std::string format_report(const RestoreReport& report);
/// For take_failed_restores().
void note_failed_restore(const RestoreReport& report);
/// False when the text is no whole report.
bool parse_report(const std::string& text, RestoreReport& report);

}  // namespace ergotune
