// How far searches get in a given wall time, from one recording with what every configuration cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

struct WallTableOptions {
  std::string file;
  std::vector<std::string> strategies{"auto", "random"};
  std::vector<double> looks{10, 30, 60};  ///< s of wall time
  std::size_t repeats = 10, jobs = 14;    ///< compile workers
  std::uint64_t first = 1;                ///< seed
  int threads = 0;
};

/// Replays a live session's order of events: workers compile ahead, side by side; one runner measures; asking and
/// telling take the strategy's own time here (CPU time of its thread), and wait for nothing but results. Prints per
/// strategy the loss against the recording's optimum at each look, and how many configurations a second came in all and
/// after the best had been found. Everything is replayed but the thinking.
void print_wall_table(const WallTableOptions& options);

}  // namespace ergotune
