// Several objectives: how much of the true front's volume searches reach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

struct ParetoTableOptions {
  std::vector<std::string> files;  ///< recordings with time and energy
  std::size_t spaces = 0;          ///< drawn spaces beside them
  std::vector<std::string> strategies{"auto", "nsga2", "random"};
  std::size_t repeats = 10, slots = 1;
  std::uint64_t first = 1;  ///< seed of the first space
  int threads = 0;
};

/// Hypervolume up to 1.1 times the true front's worst values, as a share of the true front's, after 50, 100 and 200
/// evaluations: of recordings time and energy, of drawn spaces (cliffs.hpp) time and energy, and time, energy and
/// error.
void print_pareto_table(const ParetoTableOptions& options);

}  // namespace ergotune
