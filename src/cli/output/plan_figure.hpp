// What plans found, as figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune::cli {

/// J of a round: measured or recorded, or power times time; nullopt where it failed or is unknown.
std::optional<double> energy_of(const Measurement& measurement);

/// The energy that each plan found over what it requested. Where power limits and clocks were compared (two plans over
/// code and settings at once), below them what ran under every setting: power, energy, voltage and time over the clock
/// that ran (Going Green, Figures 6 to 8).
std::vector<Chart> plan_charts(const PlanComparison& comparison, const std::vector<Parameter>& parameters);

}  // namespace ergotune::cli
