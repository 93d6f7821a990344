// What a sweep over sizes of a problem found: each winner at every size, the best for all, a tree that chooses.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/size_choice.hpp"
#include "report/ranked_results.hpp"

namespace ergotune::cli {

struct SizeSweep {
  std::vector<Constants> sizes;
  std::vector<TunedSession> tuned;        ///< of each size; none without a winner
  std::vector<Constants> configurations;  ///< the winners, each once
  SizedResults results;                   ///< the objective, turned so that less is better
};

/// A winner's parameters by name.
Constants winner_of(const RankedResults& ranked);
/// What `ranked` says a measurement is worth in SizedResults; nullopt where it did not work.
std::optional<double> sized_value(const Objective& objective, const Measurement& measurement);

void print_sweep(const SizeSweep& sweep, std::size_t leaves, bool worst_case);
nlohmann::ordered_json sweep_document(const SizeSweep& sweep, std::size_t leaves, bool worst_case);
/// Writes the tree as code: Python where the file ends in .py, else C++. Throws UserError where there is no tree.
void write_tree(const SizeSweep& sweep, std::size_t leaves, bool worst_case, const std::filesystem::path& file);

}  // namespace ergotune::cli
