// Results as `show`, `import` and `export` use them: read from a store or a file of another tool, and ranked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "search/importance.hpp"
#include "search/objective.hpp"
#include "search/ranking.hpp"
#include "store/formats/export.hpp"

namespace ergotune::cli {

/// What every verb that reads results calls its default.
inline constexpr const char* kDefaultStore = "ergotune.db";

/// Writes what was found wrong while `file` was read (it is cut off, rows are left out) to standard error.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings);

/// A session of a store (0: the latest), or a recording of any format, whose warnings are printed.
ResultSet load_results(const std::filesystem::path& file, std::int64_t session);
ResultSet load_session(const Store& store, std::int64_t session);

struct RankedResults {
  ResultSet results;
  Objective objective;
  /// Rows that worked, the best first, one per configuration; for a Pareto objective its front.
  std::vector<std::size_t> best;
  std::map<std::string, std::uint64_t> statuses;
  /// How the search's values repeated when they were confirmed.
  Repeats repeats;

  bool is_confirmed(std::size_t row) const { return results.rows[row].confirmed_for == objective.spec(); }
  /// Why a row that reads better than the confirmed winner stands behind it; nullopt where it does not read better.
  std::optional<Unconfirmed> unconfirmed(std::size_t row) const;
};

/// Ranks by the results' own objective, or by `objective` when given. Throws UserError for an objective that
/// means nothing.
RankedResults rank_results(ResultSet results, const std::optional<std::string>& objective);

/// One session or recording, ranked. Throws UserError also for an objective that none of its results can answer.
RankedResults load_ranked(const std::filesystem::path& file, std::int64_t session,
                          const std::optional<std::string>& objective);

/// Every session of a store, ranked by its own objective; a recording is one session.
std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective);

/// What the parameters do to the objective; nothing of a front.
Importance importance_of(const RankedResults& ranked);

/// How sure the winner is; nullopt where it was not confirmed for this objective.
std::optional<Certainty> certainty_of(const RankedResults& ranked);

/// The best row as headers take it; nullopt when nothing worked.
std::optional<BestResult> best_of(const RankedResults& ranked);

}  // namespace ergotune::cli
