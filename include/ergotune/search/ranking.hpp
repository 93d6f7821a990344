// The one order of results: tune, show, report, exports and Python tell the same winner and the same number.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ergotune/search/objective.hpp"

namespace ergotune {

/// One result in its place.
struct Ranked {
  std::size_t position = 0;  ///< in the list that was ranked
  Outcome outcome;           ///< under all that is known
  std::optional<double> value;  ///< as the user reads it
};

/// Usable results, best first; of a Pareto objective the front only, in the order of its first objective (of equal
/// points the first). The objective forgets what it was told before, and all of them are told to it before any two are
/// compared: best(NAME) and a lexicographic objective's bands follow from this list alone.
///
/// `confirmed` says of a position that its value is the mean of confirmation rounds made for this objective. The best of
/// those leads, whatever the others read: a value that won a search was picked for its luck as well. Behind it all stand
/// by their values. A front has no leader. Of those as good as the leader within their intervals one that ran at the clock
/// asked for comes before one that a power limit held down.
std::vector<Ranked> rank(Objective& objective, std::span<const Measurement* const> measurements,
                         const std::function<bool(std::size_t)>& confirmed = {});

/// Throws UserError where something that the objective needs was measured in none of the results that worked.
void refuse_what_was_not_measured(const Objective& objective, std::span<const Measurement* const> measurements);

}  // namespace ergotune
