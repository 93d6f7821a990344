// Small charts as stand-alone SVG: points, lines and intervals. No scripts, no fonts to load.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ergotune {

/// Text as it may stand in SVG and HTML, in attributes too.
std::string escape_markup(std::string_view text);

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;
  bool line = false;
  bool right_axis = false;
  /// A value per point that colours it (the clock); empty: one colour.
  std::vector<double> shade;
  /// Grey and dashed: what the others are compared with. It takes no colour from them.
  bool dashed = false;
};

struct ChartBand {
  double low = 0, high = 0;
  std::string label;
};

struct Chart {
  std::string title, x_label, y_label, right_label, shade_label;
  std::vector<ChartSeries> series;
  /// Vertical bands: an interval of the x axis.
  std::vector<ChartBand> bands;
  /// Ends of the left axis; what lies beyond is drawn at the edge. Nothing: all values are seen.
  std::optional<std::pair<double, double>> y_limits;
  /// A line of small print below: where the numbers come from ("simulated").
  std::string note;
};

/// The charts one below the other as one stand-alone SVG.
std::string to_svg(const std::vector<Chart>& charts);

}  // namespace ergotune
