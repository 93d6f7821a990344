// How sure the choice of a winner is.
#pragma once

#include <optional>
#include <vector>

#include "store/certainty.hpp"

namespace ergotune {

/// What a candidate took in one round of a confirmation. All candidates of a round share its number and its conditions.
struct RoundValue {
  int round = 0;
  double value = 0;  ///< smaller is better
  double standard_error = 0;
};

struct Chances : Certainty {
  /// Of each candidate that it is the best; the first is probability_best.
  std::vector<double> of;
};

/// Of choosing the first candidate, from the rounds of each; nullopt for fewer than two candidates. The logarithms of
/// the values follow
///
///     candidate + round + noise
///
/// by Gibbs sampling with a fixed seed. A round's effect (the load and the clock of that minute, the device) is shared
/// by its candidates, so it is no noise of their differences. Each candidate has its own noise; few rounds say little
/// of it, so that the candidates' noises inform each other (marginally Student's t), and none is below what the rounds
/// say of themselves. Candidates are spread as Student's t around their centre: of many that noise cannot tell apart,
/// the one that reads best was lucky.
std::optional<Chances> chances_of(const std::vector<std::vector<RoundValue>>& candidates);

}  // namespace ergotune
