// Converts recorded results to a prior for a search.
#pragma once

#include <functional>

#include "ergotune/strategy.hpp"
#include "search/objective.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Computes metrics that a recording lacks.
using Completion = std::function<void(Measurement&, const Configuration&)>;

/// The outcomes of a space's configurations in a recording, judged by `objective`. Parameters are matched by name,
/// values by equality. A parameter that the recording lacks has its default there; parameters that only the recording
/// has are ignored, and of several rows for one configuration the best counts. Rows outside the space are left out. If
/// the recording lacks what the objective needs, no outcome is ok.
PriorResults prior_results(const Recording& recording, const SearchSpace& space, Objective objective,
                           const Completion& complete = {});

/// Outcomes that are ok.
std::size_t usable_outcomes(const PriorResults& prior);

}  // namespace ergotune
