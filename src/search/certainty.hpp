// How certain the choice of a winner is.
#pragma once

#include <optional>
#include <vector>

#include "store/certainty.hpp"

namespace ergotune {

/// The value of a candidate in one round of confirmation repeats. All candidates of a round share its number and its
/// conditions.
struct RoundValue {
  int round = 0;
  double value = 0;  ///< smaller is better
  double standard_error = 0;
};

/// Certainty with the probabilities of all candidates.
struct ChoiceProbabilities : Certainty {
  /// For each candidate, the probability that it is the best; the first equals probability_best.
  std::vector<double> of;
};

/// Certainty of choosing the first candidate, from the confirmation repeats of all candidates; nullopt for fewer than
/// two candidates. The logarithms of the values are modelled as
///
/// candidate + round + noise
///
/// by Gibbs sampling with a fixed seed. The effect of a round (load and clock at that time, the device) is shared by
/// its candidates, so that it does not count as noise of their differences. Each candidate has its own noise; since a
/// few rounds determine it poorly, all candidates' noises inform each other (marginally Student's t), and none is below
/// the standard errors of the values. Candidates are distributed around their centre as Student's t: among many
/// candidates that noise cannot distinguish, the one with the best value is assumed to have been lucky.
std::optional<ChoiceProbabilities> choice_probabilities(const std::vector<std::vector<RoundValue>>& candidates);

}  // namespace ergotune
