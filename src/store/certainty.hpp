#pragma once

namespace ergotune {

/// How sure the choice of a winner is, once it was measured again beside its rivals.
struct Certainty {
  /// That the winner is the best of those that were measured again.
  double probability_best = 0;
  /// What the winner is expected to be worse than the best of them, as a share.
  double expected_loss = 0;
};

}  // namespace ergotune
