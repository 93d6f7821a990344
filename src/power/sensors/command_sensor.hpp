// Parses the output of a command sensor's program.
#pragma once

#include <optional>
#include <string_view>

namespace ergotune {

/// One line: "seconds watts" (time on the program's own clock, the wall clock or CLOCK_MONOTONIC), or "watts".
struct CommandLine {
  std::optional<double> time;
  double watts = 0;
};
/// Accepts blanks, tabs, commas and semicolons as separators, and "W" after the number. Returns nullopt for other text.
std::optional<CommandLine> parse_command_line(std::string_view line);

}  // namespace ergotune
