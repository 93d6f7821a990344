// Tunes the hyperparameters of a strategy over recorded spaces with ergotune itself: the options form a search space,
// and their score is maximised.
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

/// Searches the candidate values of all options of `strategy` (ergotune/strategy.hpp: StrategyOption) with the default
/// strategy. The defaults are evaluated first. Throws UserError if the strategy has no options.
StrategyTuning tune_strategy(const std::string& strategy, const std::vector<ScoredSpace>& spaces,
                             const ScoreOptions& options, std::uint64_t trials);

/// Parses a hyperparameter of the command line: integer, real, or text.
Value strategy_option_value(const std::string& text);

}  // namespace ergotune
