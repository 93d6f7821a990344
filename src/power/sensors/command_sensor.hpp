// What a command sensor's program prints.
#pragma once

#include <optional>
#include <string_view>

namespace ergotune {

/// One line: "seconds watts" (the program's own clock, the wall clock, or CLOCK_MONOTONIC) or "watts" alone.
struct CommandLine {
  std::optional<double> time;
  double watts = 0;
};
/// Separators are blanks, tabs, commas or semicolons; "W" after the number is fine. nullopt when it is
/// something else.
std::optional<CommandLine> parse_command_line(std::string_view line);

}  // namespace ergotune
