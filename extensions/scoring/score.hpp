// Scores strategies on recorded spaces by the method of the auto-tuning community (Willemsen et al., "A methodology for
// comparing optimization algorithms for auto-tuning", 2024): 0 is random search, 1 finds the optimum at once, negative
// is worse than random. All evaluations are replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/statistics.hpp"
#include "ergotune/strategy.hpp"
#include "evaluate/recorded/replay.hpp"
#include "scoring/score_baseline.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// A recorded space prepared for scoring: value and cost of all configurations, the random baseline, the budget.
class ScoredSpace {
 public:
  /// `objective`: an objective's text; empty: that of the recording. Throws UserError if the recording has no valid
  /// value for it, or if it is a Pareto objective.
  ScoredSpace(Recording recording, const std::string& objective = {});

  const std::string& name() const { return state_->name; }
  const SearchSpace& space() const { return state_->table.space(); }
  std::size_t failed() const { return state_->failed; }
  /// Transformed so that smaller is better.
  double optimum() const { return state_->baseline.optimum; }
  double budget_seconds() const { return state_->baseline.budget; }
  /// Number of random draws expected to reach 95 % of the way from the median to the optimum.
  std::size_t draws_to_cutoff() const { return state_->baseline.draws_to_cutoff; }
  /// Points in time, s, and the value that random search is expected to have reached at each.
  const std::vector<double>& times() const { return state_->baseline.times; }
  const std::vector<double>& baseline() const { return state_->baseline.curve; }

  struct State {
    ReplayTable table;
    std::string name;
    std::vector<double> values;  ///< by configuration; infinity: failure
    std::size_t failed = 0;
    bool costs_unknown = false;
    search::ScoreBaseline baseline;

    double seconds(ConfigurationIndex index) const { return costs_unknown ? 1.0 : table.seconds(index); }
    double repeat_seconds(ConfigurationIndex index) const { return costs_unknown ? 1.0 : table.run_seconds(index); }
  };
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

struct ScoreOptions {
  int repeats = 20;
  std::uint64_t seed = 1;  ///< repeat i runs with seed + i
  int threads = 0;         ///< 0: all cores
  std::map<std::string, Value> strategy_options;
  /// Called after every run, from any thread but not concurrently.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

struct SpaceScore {
  std::string space;
  double score = 0;
  /// Expected number of unique evaluations until within 5 % and 1 % of the optimum: evaluations over all repeats
  /// divided by the number of repeats that reached it. If none did, the evaluations made: a lower bound.
  double evaluations_to_5_percent = 0, evaluations_to_1_percent = 0;
  std::size_t successes_5_percent = 0, successes_1_percent = 0;
  /// Mean over the repeats of optimum / best after this many unique evaluations.
  std::map<int, double> relative_at;
  /// Score P(t) and the strategy's curve F(t) at the space's points in time.
  std::vector<double> improvement, values;
  /// CPU time of the strategy itself, s per evaluation (median over repeats).
  double own_seconds = 0;
  double evaluations = 0;  ///< mean per run
};

struct StrategyScore {
  std::string strategy;
  double mean = 0;
  std::vector<double> improvement;  ///< mean over the spaces, for each point in time
  std::vector<SpaceScore> spaces;
  /// Geometric means over the spaces.
  double evaluations_to_5_percent = 0, evaluations_to_1_percent = 0;
};

/// Runs each strategy `repeats` times on each space, in parallel.
std::vector<StrategyScore> score_strategies(const std::vector<std::string>& strategies,
                                            const std::vector<ScoredSpace>& spaces, const ScoreOptions& options = {});

/// An evaluation in a run of another tool. score_runs() takes, for each repeat, its evaluations in order.
struct ForeignEvaluation {
  double time = 0;   ///< s from the start of the run to the end of the evaluation
  double value = 0;  ///< smaller is better; infinity: failure
};
SpaceScore score_runs(const ScoredSpace& space, const std::vector<std::vector<ForeignEvaluation>>& runs);

/// Combines the scores of a strategy over several spaces; `spaces` becomes a member of the result.
StrategyScore combine_scores(const std::string& strategy, std::vector<SpaceScore> spaces);

}  // namespace ergotune
