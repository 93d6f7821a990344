// The results of one session, ranked and judged once: from a ledger whose work has ended, from a store or a recording.
// Every output (tune, show, the report, exports, plans, Python) is a view of this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/importance.hpp"
#include "search/objective.hpp"
#include "search/ranking.hpp"
#include "store/formats/export.hpp"
#include "store/sqlite/failure_groups.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct RankedResults {
  ResultSet results;
  Objective objective;
  /// Rows that worked, the best first, one per configuration; for a Pareto objective its front.
  std::vector<std::size_t> best;
  /// The configuration where every parameter takes its default; nullopt where it was not measured.
  std::optional<std::size_t> default_row;
  /// The objective of the median configuration that worked; nullopt for a front.
  std::optional<double> median;
  std::map<std::string, std::uint64_t> statuses;
  /// How sure the best is.
  Confidence confidence;

  /// The best that a run reports: of a front all, else ten.
  std::vector<std::size_t> shown() const;
  const Measurement& measurement(std::size_t row) const { return results.rows[row].measurement; }
  /// "a=1, b=2"
  std::string configuration_text(std::size_t row) const {
    return describe(results.parameters, results.rows[row].configuration);
  }
  std::optional<double> value(std::size_t row) const { return objective.value(measurement(row)); }
  bool is_confirmed(std::size_t row) const { return results.rows[row].confirmed_for == objective.spec(); }
  /// Why a row that reads better than the confirmed winner stands behind it; nullopt where it does not read better.
  std::optional<Unconfirmed> unconfirmed(std::size_t row) const;
  /// The effect of the parameters on the objective; empty for a front.
  Importance importance() const;
  /// Rows without a value of the objective, less those that were screened.
  std::uint64_t failed() const;
  /// Of a search for least energy: whether its time alone was measured, as others of the session have less energy.
  bool is_screened(std::size_t row) const;
  std::uint64_t screened() const;
  /// The commonest first.
  std::vector<FailureGroup> failures() const;
  /// The best row as exports take it; nullopt when nothing worked.
  std::optional<BestResult> winner() const;
};

/// Ranks by the results' own objective, or by `objective` when given. Throws UserError for an invalid objective.
RankedResults rank_results(ResultSet results, const std::optional<std::string>& objective = std::nullopt);
RankedResults rank_results(ResultSet results, Objective objective);

/// A session (0: the latest) of a store, or a recording of any format; its warnings are in ResultSet::warnings.
ResultSet load_results(const std::filesystem::path& file, std::int64_t session);
/// The same, ranked. Throws UserError also for an objective that none of its results can answer.
RankedResults load_ranked(const std::filesystem::path& file, std::int64_t session,
                          const std::optional<std::string>& objective);
/// Every session of a store, ranked by its own objective; a recording is one session.
std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective);

/// A run that has ended: all that its session knows, and what the run took.
struct TunedSession {
  RankedResults ranked;
  SessionResult run;
  std::vector<std::string> notes;     ///< known before the search
  std::vector<std::string> findings;  ///< notes on what the search found
};
/// Searches what was prepared: `ergotune tune`, the C++ function and Python's.
TunedSession tune_session(PreparedSession& prepared, const SessionOptions& options);

}  // namespace ergotune
