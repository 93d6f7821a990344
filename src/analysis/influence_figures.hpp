// The figures of Anzt et al. (2015), 6 to 9, and rooflines, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/influence.hpp"

namespace ergotune {

/// File name and content.
using NamedFigure = std::pair<std::string, std::string>;

/// Correlations as bars to both sides, sorted, with intervals; those that move in bold, what is not significant pale.
/// `which`: speed (Figure 6), efficiency (7) or product (8).
std::string correlation_figure(const std::vector<Influence>& influences, Association Influence::*which,
                               const std::string& title, const std::string& note);
/// Figure 9: speed over the metric, efficiency over the metric, efficiency over speed, each with the configurations
/// above and below the metric's mean.
std::vector<NamedFigure> above_and_below(const Recording& recording, const Tradeoff& tradeoff,
                                         const std::string& metric, const std::string& note);
/// The paper's five rows, or what stands for them, as far as they were recorded: occupancy, ipc, dram_read_throughput,
/// l2_read_throughput, tex_throughput.
std::vector<std::string> usual_figure_metrics(const Recording& recording);
/// All of them: figure6.svg to figure8.svg, figure9-METRIC-...svg for each of `metrics`, occupancy.svg, roofline.svg,
/// roofline-energy.svg, as far as there is what they show.
std::vector<NamedFigure> influence_figures(const Recording& recording, const Tradeoff& tradeoff,
                                           const std::vector<Influence>& influences,
                                           const std::optional<Roofline>& roofline,
                                           const std::vector<std::string>& metrics);

}  // namespace ergotune
