// Online tuning pays for its trials with a share of the work that goes on.
#pragma once

namespace ergotune {

/// What all iterations and trials have cost so far, and what the iterations alone would have cost with the default
/// configuration, in s or J.
struct RegretBound {
  /// A trial is expected to cost at most this many times as much as the dearest so far.
  static constexpr double kCaution = 2;
  double bound = 0.05;  ///< cost of all trials as a share of `with_default`; savings may be spent in addition
  double spent = 0, with_default = 0;
  double longest_trial = 0, worst = 0;

  /// What may still be spent.
  double allowance() const { return (1 + bound) * with_default - spent; }
  double ratio() const { return with_default > 0 ? spent / with_default : 0; }
};

}  // namespace ergotune
