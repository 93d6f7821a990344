// The common order of results: tune, show, report, exports and Python report the same winner and the same value.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "search/objective.hpp"
#include "search/strategy_base.hpp"

namespace ergotune {

/// A result in the ranking.
struct Ranked {
  std::size_t position = 0;     ///< in the list that was ranked
  Outcome outcome;              ///< computed with all results known
  std::optional<double> value;  ///< in the user's terms
};

/// Whether a power limit held the clock below the one requested ("asked 1410 MHz, ran 1275 MHz, power cap").
bool was_held_down(const Measurement& measurement);

/// Ranks usable results, best first; for a Pareto objective only the front, ordered by its first objective (of equal
/// points the first). The objective discards earlier measurements and records all of these before any two are compared:
/// best(NAME) and a lexicographic objective's bands depend on this list only.
///
/// `confirmed` returns for a position whether its value is the mean of confirmation repeats made for this objective.
/// The best confirmed result leads, even if unconfirmed values are better: the winner of a search was selected partly
/// by luck. All others follow by value. A Pareto front has no leader. Among the results equal to the leader within
/// their intervals, one that ran at the requested clock precedes one that a power limit held down.
std::vector<Ranked> rank(Objective& objective, std::span<const Measurement* const> measurements,
                         const std::function<bool(std::size_t)>& confirmed = {});

/// How values of a search change when they are measured again: confirmed value relative to the search's value. Load and
/// clocks may have changed in between, and the leader of a search is selected partly by luck.
struct Repeats {
  double factor = 1;     ///< median ratio
  double deviation = 0;  ///< standard deviation of its logarithm for one more result, robust if there are five
  std::size_t n = 0;     ///< results that were measured again
  /// True for a deviation by more than a factor of 2: what one changed by is not what the others did.
  bool scatter() const;
};
/// The search's measurement, and the confirmed one.
using MeasuredTwice = std::pair<const Measurement*, const Measurement*>;
Repeats repeatability_of(const Objective& objective, std::span<const MeasuredTwice> pairs);
/// A note for users where values did not repeat; empty where they did, or where fewer than two were measured again.
/// `confirmation_repeats`: of the winner, from which the probability that it is the best is estimated.
std::string repeats_note(const Repeats& repeats, int confirmation_repeats);

/// Expected improvement of a searched result over the confirmed one, as a share: its value is scaled by
/// Repeats::factor, and the uncertainties of all three form a normal distribution. For outcomes with one value.
double expected_gain(const Outcome& searched, const Outcome& confirmed, const Repeats& repeats);

/// What is expected of a result that was measured in the search alone.
struct Unconfirmed {
  double expected = 0;       ///< expected value under the conditions of the confirmation, in the user's terms
  double expected_gain = 0;  ///< over the leader, as a share
};
/// `leader`: the confirmed one. nullopt for a Pareto objective, and for a result that has no value.
std::optional<Unconfirmed> unconfirmed(const Objective& objective, const Measurement& result, const Measurement& leader,
                                       const Repeats& repeats);

/// Throws UserError if a quantity that the objective needs was measured in no usable result.
void validate_measured_quantities(const Objective& objective, std::span<const Measurement* const> measurements);

}  // namespace ergotune
