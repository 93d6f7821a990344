// A second device: how soon a search arrives with the recording of another device as its prior.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

struct PriorTableOptions {
  std::vector<std::string> files;
  std::vector<std::string> kinds{"prior", "inverted", "shuffled", "foreign"};
  std::string strategy = "auto";
  std::size_t repeats = 10, evaluations = 300;
  std::uint64_t first = 1;  ///< seed
  int threads = 0;
};

/// For each two recordings of one kernel, a target and a prior: expected evaluations to within 1 % of the optimum, mean
/// loss after 50, and how many of the seeds differ in their first ten requests, without the prior and with it as it is,
/// with its values inverted, or shuffled. "foreign": a recording of another kernel. Everything is replayed.
void print_prior_table(const PriorTableOptions& options);

}  // namespace ergotune
