// Hyperparameters of a strategy, tuned over recorded spaces by the tool itself: the strategy's options are a search
// space like any other, their score is what is maximised.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scoring/score.hpp"

namespace ergotune {

struct StrategyTrial {
  std::map<std::string, Value> options;
  double score = 0;
};

struct StrategyTuning {
  std::string strategy;
  double default_score = 0, best_score = 0;
  std::map<std::string, Value> best;
  std::vector<StrategyTrial> trials;
};

/// Searches the candidates of every option of `strategy` (ergotune/strategy.hpp: StrategyOption) with the default
/// strategy. The defaults are tried first. Throws UserError when it has nothing to tune.
StrategyTuning tune_strategy(const std::string& strategy, const std::vector<ScoredSpace>& spaces,
                             const ScoreOptions& options, std::uint64_t trials);

/// A hyperparameter as written on a command line: whole number, real, or text.
Value strategy_option_value(const std::string& text);

}  // namespace ergotune
