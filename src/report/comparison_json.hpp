// A comparison of sessions as JSON, for `ergotune compare --json` and the page.
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

/// Sessions loaded from files: a store (its latest session), "STORE:SESSION", or any recording.
struct ComparedFiles {
  std::deque<ReportSource> sources;
  std::deque<Objective> objectives;
  std::vector<ComparedSession> sessions;  ///< refer to the members above
  Comparison comparison;
  std::vector<std::pair<std::filesystem::path, std::vector<std::string>>> warnings;
};
/// Compares by the sessions' objective, or by `objective`. Throws UserError for fewer than two sessions.
ComparedFiles compare_files(const std::vector<std::string>& names, const std::optional<std::string>& objective);

/// `names`: the names of the sessions, in their order.
nlohmann::ordered_json comparison_json(const std::vector<std::string>& names,
                                       const std::vector<ComparedSession>& sessions, const Comparison& comparison);

}  // namespace ergotune
