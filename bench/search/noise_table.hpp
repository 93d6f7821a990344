// The final choice where measurements are noisy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

struct NoiseTableOptions {
  std::vector<std::string> files;
  double noise = 0.05;  ///< standard deviation of a measurement, share of its value
  std::size_t repeats = 10, evaluations = 400;
  std::uint64_t first = 1;  ///< seed
  int threads = 0;
};

/// Whole sessions on replayed recordings with normal noise put on them, at the budget that scoring gives each space
/// (`evaluations` at most): what the winner truly loses against the optimum and against the best that was measured,
/// what the session says of it, and how often something was measured again.
void print_noise_table(const NoiseTableOptions& options);

}  // namespace ergotune
