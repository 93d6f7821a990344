// A comparison of sessions as JSON: `ergotune compare --json`, and what the page shows.
#pragma once

#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/comparison.hpp"
#include "report/document.hpp"

namespace ergotune {

/// Sessions of files: a store (its latest session), "STORE:SESSION", or any recording.
struct ComparedFiles {
  std::deque<ReportSource> sources;
  std::deque<Objective> objectives;
  std::vector<ComparedSession> sessions;  ///< of the members above
  Comparison comparison;
  std::vector<std::pair<std::filesystem::path, std::vector<std::string>>> warnings;
};
/// By what was tuned for, or by `objective`. Throws UserError for fewer than two.
ComparedFiles compare_files(const std::vector<std::string>& names, const std::optional<std::string>& objective);

/// `names`: what the sessions are called, in their order.
nlohmann::ordered_json comparison_json(const std::vector<std::string>& names,
                                       const std::vector<ComparedSession>& sessions, const Comparison& comparison);

}  // namespace ergotune
