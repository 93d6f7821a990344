// Small charts as stand-alone SVG: points, lines and intervals; without scripts and fonts. Also the figure of a space's
// pruning.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// Escapes text for SVG and HTML, attributes included.
std::string escape_markup(std::string_view text);

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;
  bool line = false;
  bool right_axis = false;
  /// A value per point that determines its colour (the clock); empty: one colour.
  std::vector<double> shade;
  /// Grey and dashed, for a reference curve; does not use a colour of the palette.
  bool dashed = false;
};

struct ChartBand {
  double low = 0, high = 0;
  std::string label;
};

struct Chart {
  std::string title, x_label, y_label, right_label, shade_label;
  std::vector<ChartSeries> series;
  /// Vertical bands, each over an interval of the x axis.
  std::vector<ChartBand> bands;
  /// Limits of the left axis; values beyond are drawn at the edge. nullopt: all values are visible.
  std::optional<std::pair<double, double>> y_limits;
  /// A line in small print below the chart: the provenance of its values ("simulated").
  std::string note;
};

/// Draws the charts one below the other in one stand-alone SVG.
std::string to_svg(const std::vector<Chart>& charts);

/// Stand-alone SVG with logarithmic bars: the product of all values, the valid configurations, and for each restriction
/// what it removes by itself and, darker, what no other restriction removes.
std::string pruning_figure(const SearchSpace& space, const std::vector<RestrictionEffect>& effects);

}  // namespace ergotune
