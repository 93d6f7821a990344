// How sure the choice of a winner is.
#pragma once

#include <optional>
#include <vector>

#include "ergotune/search/strategy.hpp"

namespace ergotune {

/// Of choosing the first of these values for the smallest: what it is expected to be above the smallest, as a share of its
/// own, by sampling normal distributions with these errors. 0 where there is nothing to choose from.
double expected_loss(const std::vector<double>& values, const std::vector<double>& errors);

/// Probability for each value that it is the smallest, by the same sampling.
std::vector<double> probability_of_being_best(const std::vector<double>& values, const std::vector<double>& errors);

struct Certainty {
  /// That the winner is the best of those that were confirmed beside each other.
  double probability_best = 0;
  /// What it is expected to be above the best of them, as a share of its value.
  double expected_loss = 0;
};

/// Of what was confirmed beside each other, the winner first; nullopt for none.
std::optional<Certainty> certainty_of(const std::vector<Outcome>& confirmed);

}  // namespace ergotune
