// Names that an objective may use beside quantities and metrics.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// For Objective::parse(): `metrics`, and each unknown one of `names` (what a program's output says) as if it were one.
std::vector<Metric> with_names(std::vector<Metric> metrics, const std::vector<std::string>& names);
/// Of a recording.
std::vector<std::string> column_names(const Recording& recording);
/// The same of a problem: what its program's output says.
std::vector<Metric> known_metrics(const Problem& problem);

}  // namespace ergotune
