// Strategies on the spaces of cliffs.hpp, or on problems on a simulated device, as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune::cliffs {

struct TableOptions {
  std::uint64_t first = 1;               ///< seed of the first space
  std::size_t spaces = 10, repeats = 5;  ///< at most 30 where problems are simulated
  std::vector<std::string> files;        ///< problems to simulate in place of drawn spaces
  std::string device = "a100";
  std::vector<std::string> strategies = {"auto", "random", "genetic"};  ///< the first is judged against random
  std::size_t evaluations = 400;                                        ///< at most 400
  int threads = 0;                                                      ///< 0: one per core
  std::size_t slots = 1;                                                ///< evaluations at a time
  double seconds = 0;  ///< that an evaluation takes; 0: the strategy is not told
};

/// Prints each space, each strategy's mean loss after 25 to 400 evaluations, and its own time an evaluation.
void print_table(const TableOptions& options);

}  // namespace ergotune::cliffs
