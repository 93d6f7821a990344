#pragma once

namespace ergotune {

/// How certain the choice of a winner is, after its confirmation.
struct Certainty {
  /// Probability that the winner is the best of the confirmed candidates.
  double probability_best = 0;
  /// Expected loss: how far the winner is expected to be from the best of them, relative to its value.
  double expected_loss = 0;
};

}  // namespace ergotune
