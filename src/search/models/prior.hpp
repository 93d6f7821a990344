// Recorded results of elsewhere as a prior of a search.
#pragma once

#include <functional>

#include "ergotune/strategy.hpp"
#include "search/objective.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Works out what a recording does not hold, as metrics.
using Completion = std::function<void(Measurement&, const Configuration&)>;

/// What a recording says of a space's configurations, judged by `objective`. Parameters meet by name and values by
/// value; one that the recording lacks takes its default there, one that only the recording has is passed over (of
/// several rows for one configuration the best counts), and rows that are not in the space are left out. No outcome is
/// ok where the recording lacks what the objective is about.
PriorResults prior_results(const Recording& recording, const SearchSpace& space, Objective objective,
                           const Completion& complete = {});

/// Outcomes that are ok.
std::size_t usable_outcomes(const PriorResults& prior);

}  // namespace ergotune
