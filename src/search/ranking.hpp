// The one order of results: tune, show, report, exports and Python tell the same winner and the same number.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/statistics.hpp"
#include "search/objective.hpp"

namespace ergotune {

/// One result in its place.
struct Ranked {
  std::size_t position = 0;     ///< in the list that was ranked
  Outcome outcome;              ///< under all that is known
  std::optional<double> value;  ///< as the user reads it
};

/// Usable results, best first; of a Pareto objective the front only, in the order of its first objective (of equal
/// points the first). The objective forgets earlier measurements, and sees all of these before any two are
/// compared: best(NAME) and a lexicographic objective's bands follow from this list alone.
///
/// `confirmed` says of a position that its value is the mean of confirmation rounds made for this objective. The best
/// of those leads, whatever the others read: a value that won a search was picked for its luck as well. Behind it all
/// stand by their values. A front has no leader. Of those as good as the leader within their intervals one that ran at
/// the clock requested comes before one that a power limit held down.
std::vector<Ranked> rank(Objective& objective, std::span<const Measurement* const> measurements,
                         const std::function<bool(std::size_t)>& confirmed = {});

/// Of the first value; 0 where it is exact.
ErrorEstimate error_of(const Outcome& outcome);
/// Half-width of the 95 % interval of the difference of two outcomes' first values (Student's t, Welch's degrees).
double half_width_of_difference(const Outcome& a, const Outcome& b);

/// How values of a search repeat when they are measured again: what was confirmed over what the search read. Load and
/// clocks may have changed in between, and what leads a search is picked for its luck as well.
struct Repeats {
  double factor = 1;     ///< median ratio
  double deviation = 0;  ///< robust standard deviation of its logarithm, for one more result
  std::size_t n = 0;     ///< results that were measured again
};
/// What the search read, and what was confirmed.
using MeasuredTwice = std::pair<const Measurement*, const Measurement*>;
Repeats repeats_of(const Objective& objective, std::span<const MeasuredTwice> pairs);

/// What a result of the search is expected to improve on what was confirmed, as a share: its value over
/// Repeats::factor's change, with the uncertainties of all three as a normal distribution. Outcomes of one value.
double expected_gain(const Outcome& searched, const Outcome& confirmed, const Repeats& repeats);

/// Of a result that reads better than the confirmed leader and stands behind it.
struct Unconfirmed {
  double expected = 0;       ///< value, as the user reads it, under the conditions of the confirmation
  double expected_gain = 0;  ///< over the leader, as a share
};
/// nullopt where the result does not read better.
std::optional<Unconfirmed> unconfirmed(const Objective& objective, const Measurement& result, const Measurement& leader,
                                       const Repeats& repeats);

/// Throws UserError where something that the objective needs was measured in none of the results that worked.
void validate_measured_quantities(const Objective& objective, std::span<const Measurement* const> measurements);

}  // namespace ergotune
