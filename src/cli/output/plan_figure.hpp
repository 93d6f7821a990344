// Figures of the results of plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune::cli {

/// J per iteration, measured or recorded, or power times time; nullopt if the configuration failed or it is unknown.
std::optional<double> energy_of(const Measurement& measurement);

/// A chart of the energy that each plan found over the number of configurations that it requested. If power limits and
/// clocks were compared (by two plans over code and settings at once), also charts of power, energy, voltage and time
/// over the actual clock, for every setting (Going Green, Figures 6 to 8).
std::vector<Chart> plan_charts(const PlanComparison& comparison, const std::vector<Parameter>& parameters);

}  // namespace ergotune::cli
