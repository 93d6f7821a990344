// Leaderboard: the results of a search so far, ranked by its objective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "search/objective.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

class Leaderboard {
 public:
  Leaderboard(const Ledger& ledger, Objective& objective) : ledger_(ledger), objective_(objective) {}

  /// Adds a configuration that the ledger knows. Returns true if the outcomes of earlier configurations have changed as
  /// well (Objective::revision, DeviceFactors::revision); the caller then calls recompute_outcomes().
  bool see(ConfigurationIndex index);
  /// Recomputes all outcomes with the current device factors and drift.
  void recompute_outcomes();

  bool seen(ConfigurationIndex index) const { return outcomes_.contains(index); }
  const Outcome& outcome(ConfigurationIndex index) const { return outcomes_.at(index); }
  const Measurement& measurement(ConfigurationIndex index) const { return ledger_.find(index)->measurement; }
  /// The measurement that the objective is applied to: corrected to the mean device under its mean load
  /// (Ledger::levelled).
  const Measurement& judged(ConfigurationIndex index) const;
  /// Whether its energy is modelled (Ledger::screen): the strategy may judge it by that, and no answer is made of it.
  bool is_guess(ConfigurationIndex index) const;
  /// In the order in which they were seen.
  const std::vector<ConfigurationIndex>& order() const { return order_; }
  /// Of these, those that count as evaluations of this search: not what an earlier one measured for another objective.
  std::size_t evaluations() const { return order_.size() - foreign_; }
  std::optional<ConfigurationIndex> best() const { return best_; }
  std::optional<double> best_value() const;
  std::uint64_t failed() const { return failed_; }
  std::size_t usable() const { return usable_; }
  /// Usable configurations seen when the best, by what they are judged by, was last improved by over 1 %; at least
  /// those that were measured for another objective.
  std::size_t last_improvement() const { return last_improvement_; }
  /// Configurations from best to worst in the order of search/ranking.hpp; with several objectives, the Pareto front.
  std::vector<ConfigurationIndex> ranking();
  /// Like ranking(), but by the corrected values of judged(): the configurations worth measuring again.
  std::vector<ConfigurationIndex> candidates();
  const Ledger& ledger() const { return ledger_; }
  Objective& objective() const { return objective_; }

 private:
  void level(ConfigurationIndex index);
  std::vector<ConfigurationIndex> ranked(const Measurement& (Leaderboard::*of)(ConfigurationIndex) const);
  /// Makes it the best or the leader where it is better; whether it became the leader.
  bool compare(ConfigurationIndex index);

  const Ledger& ledger_;
  Objective& objective_;
  std::unordered_map<ConfigurationIndex, Outcome> outcomes_;
  std::unordered_map<ConfigurationIndex, Measurement> levelled_;
  std::vector<ConfigurationIndex> order_;
  std::optional<ConfigurationIndex> best_, leader_;  ///< of those that were measured; of all, guesses among them
  std::uint64_t failed_ = 0, revision_ = 0;
  std::size_t usable_ = 0, last_improvement_ = 0, factors_revision_ = 0, foreign_ = 0;
  double best_then_ = 0;
};

}  // namespace ergotune
