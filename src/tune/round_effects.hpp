// What rounds of a confirmation have in common, so that candidates of different rounds compare.
#pragma once

#include <vector>

#include "search/certainty.hpp"

namespace ergotune {

/// How much more each candidate's rounds took than the mean round, by all candidates: logarithms as candidate + round +
/// noise, rounds as normal deviates whose variance is estimated, so that noise is not taken for drift. 1 for all where
/// each candidate was in every round. Values must be positive.
std::vector<double> factors_of_rounds(const std::vector<std::vector<RoundValue>>& candidates);

}  // namespace ergotune
