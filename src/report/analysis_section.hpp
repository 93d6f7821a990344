// The part of the report's document that src/analysis fills.
#pragma once

#include <nlohmann/json.hpp>

#include "ergotune/store/recording.hpp"

namespace ergotune {

/// Speed against efficiency with the convex hull and the two lines of Anzt et al. (2015), what correlates
/// with either, and how hard the recorded space is for local search. Members that a recording cannot fill are
/// absent: without energy there is no hull; with fewer than ten configurations there is nothing to analyse,
/// and the whole is null.
nlohmann::ordered_json analysis_section(const Recording& recording);

}  // namespace ergotune
