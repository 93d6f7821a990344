// Effects that all candidates share in one round of confirmation repeats; removing them makes candidates of different
// rounds comparable.
#pragma once

#include <vector>

#include "search/certainty.hpp"

namespace ergotune {

/// For each candidate, the mean factor by which its rounds took more than the mean round. Model: logarithm = candidate
/// + round + noise, with normally distributed round effects of estimated variance, so that noise is not taken for
/// drift. All factors are 1 if each candidate was in every round. Values must be positive.
std::vector<double> repeat_bias_factors(const std::vector<std::vector<RoundValue>>& candidates);

}  // namespace ergotune
