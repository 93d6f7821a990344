// A second device: how soon a search arrives with the other recordings of the same kernel as priors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

struct PriorTableOptions {
  std::vector<std::string> files;
  std::vector<std::string> kinds{"none", "others", "shuffled", "inverted", "foreign"};
  std::string strategy = "auto";
  std::size_t repeats = 10, evaluations = 300;
  std::uint64_t first = 1;  ///< seed
  int threads = 0;
};

/// For each recording, and each kind of prior (none, those of the same kernel, the same with their values shuffled,
/// the same turned upside down,
/// those of other kernels): expected evaluations to within 1 % of the optimum. Everything is replayed.
void print_prior_table(const PriorTableOptions& options);

}  // namespace ergotune
