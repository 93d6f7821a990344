// The results of one session, ranked and judged once; from a ledger, a store or a recording. All outputs (tune, show,
// the report, exports, plans, Python) are views of this.
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
#include "store/result_set.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The factor by which the best is better than another value, and the half-width of its interval (0: unknown).
struct Gain {
  double factor = 1, half_width = 0;
};

struct RankedResults {
  ResultSet results;
  Objective objective;
  /// Usable rows, the best first, one per configuration; for a Pareto objective its front.
  std::vector<std::size_t> best;
  /// The row of the default configuration; nullopt: not measured.
  std::optional<std::size_t> default_row;
  /// The median of expected_value() of usable configurations; nullopt for a Pareto front, and where repeats
  /// scatter, so that values which were not confirmed are not comparable.
  std::optional<double> median;
  std::map<std::string, std::uint64_t> statuses;
  /// How certain the best is.
  Confidence confidence;

  /// The rows that a run reports: the whole Pareto front, else the ten best.
  std::vector<std::size_t> shown() const;
  const Measurement& measurement(std::size_t row) const { return results.rows[row].measurement; }
  /// "a=1, b=2"
  std::string configuration_text(std::size_t row) const {
    return describe(results.parameters, results.rows[row].configuration);
  }
  std::optional<double> value(std::size_t row) const { return objective.value(measurement(row)); }
  /// The value; one of the search alone is changed by the factor by which the others changed when they were measured
  /// again (Repeats::factor), so that both are of the same load.
  std::optional<double> expected_value(std::size_t row) const;
  /// nullopt: not measured, or a ratio is meaningless, as of logarithms and negated times. The values of a confirmation
  /// are paired, which the interval of independent means ignores: it is wider than needed.
  std::optional<Gain> gain_over_default() const;
  /// True if the interval of the best or of the default is wider than its value.
  bool is_gain_uncertain() const;
  std::optional<Gain> gain_over_median() const;
  bool is_confirmed(std::size_t row) const { return results.rows[row].confirmed_for == objective.spec(); }
  /// What is expected of a row that was not confirmed; nullopt where the winner was not confirmed either.
  std::optional<Unconfirmed> unconfirmed(std::size_t row) const;
  /// Whether a row with a better value is ranked behind the best because a power limit held its clock down.
  bool is_behind_by_clock(std::size_t row) const;
  /// The importance of the parameters for the objective; empty for a Pareto front.
  Importance importance() const;
  /// Rows without a value of the objective, less those that were screened.
  std::uint64_t failed() const;
  /// Of a search for least energy: whether its time alone was measured, as others of the session have less energy.
  bool is_screened(std::size_t row) const;
  std::uint64_t screened() const;
  /// The commonest first.
  std::vector<FailureGroup> failures() const;
  /// Notes of the problem, warnings on the best result, and how values of the search repeated where they did not: in
  /// documents; texts print each of them in its place.
  std::vector<std::string> notes() const;
  /// The best row for exports; nullopt if no configuration worked.
  std::optional<BestResult> winner() const;
};

/// Ranks by the results' own objective, or by `objective` if given. Throws UserError for an invalid objective.
RankedResults rank_results(ResultSet results, const std::optional<std::string>& objective = std::nullopt);
RankedResults rank_results(ResultSet results, Objective objective);

/// Loads a session (0: the latest) of a store, or a recording of any format; warnings are in ResultSet::warnings.
ResultSet load_results(const std::filesystem::path& file, std::int64_t session);
/// The same, ranked. Throws UserError also for an objective that no result has a value of.
RankedResults load_ranked(const std::filesystem::path& file, std::int64_t session,
                          const std::optional<std::string>& objective);
/// All sessions of a store, the one worked on last first, each ranked by its own objective; a recording counts as one
/// session.
std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective);

/// The results of a session after a run, and the run's statistics.
struct TunedSession {
  RankedResults ranked;
  SessionResult run;
  std::vector<std::string> notes;     ///< from before the search
  std::vector<std::string> findings;  ///< notes on what the search found
};
/// Searches a prepared session. Used by `ergotune tune`, the C++ API and Python.
TunedSession tune_session(PreparedSession& prepared, const SessionOptions& options);

}  // namespace ergotune
