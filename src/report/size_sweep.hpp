// Tunes a problem at several sizes: the best of each, each winner at every size, the best for all, a tree that chooses.
// `ergotune tune --set`, and Python's tune_sizes().
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/size_choice.hpp"
#include "ergotune/problem_file.hpp"
#include "report/ranked_results.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

/// A problem with the constants of one size in the place of its own.
struct SizedProblem {
  Constants size;
  ProblemFile problem;
  SetupOptions setup;
  SessionOptions options;
};
/// Replaces constants, those of single devices too. Throws UserError for one that the problem does not have.
void set_constants(Problem& problem, const Constants& size);

struct SizeSweep {
  std::vector<Constants> sizes;
  std::vector<TunedSession> tuned;        ///< of each size
  std::vector<Constants> configurations;  ///< the winners, each once
  SizedResults results;           ///< the objective, turned so that less is better; empty where a size has no winner
  std::optional<OverSizes> over;  ///< one configuration for all sizes
  std::optional<SizeTree> tree;

  bool has_answer() const { return !results.value.empty(); }
  std::string why_no_answer() const;
  std::string provenance() const;
  /// Loss of a configuration at a size; nullopt where it does not work there.
  std::optional<double> loss_at(std::size_t configuration, std::size_t size) const;
};

/// Tunes each size with the ones before as its prior, then measures every winner at every size, in turn where they are
/// near. `search` prepares and tunes one. Ends early where it is interrupted, and at a size without a winner. Throws
/// UserError without a store. `leaves` and `worst_case` are those of size_tree().
SizeSweep sweep_sizes(std::vector<SizedProblem> sizes, std::size_t leaves, bool worst_case,
                      const std::function<TunedSession(const SizedProblem&)>& search);
/// The document of `ergotune tune --set N=1,2 --json`.
nlohmann::ordered_json sweep_document(const SizeSweep& sweep);
/// Throws UserError for a file whose ending is neither of Python nor of a C++ header.
void require_tree_ending(const std::filesystem::path& file);
/// Writes the tree as code: Python where the file ends in .py, else C++. Throws UserError where there is no tree.
void write_tree(const SizeSweep& sweep, const std::filesystem::path& file);

}  // namespace ergotune
