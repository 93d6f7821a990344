#include "ergotune/analysis/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergotune {
namespace {

constexpr double kWidth = 760, kHeight = 460, kLeft = 80, kRight = 80, kTop = 50, kBottom = 80;
const char* const kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A linear axis with round ticks.
class Axis {
 public:
  void include(double v) {
    if (!std::isfinite(v)) return;
    low_ = any_ ? std::min(low_, v) : v;
    high_ = any_ ? std::max(high_, v) : v;
    any_ = true;
  }
  void finish() {
    if (!any_) high_ = 1;
    if (high_ <= low_) high_ = low_ + (low_ != 0 ? std::abs(low_) * 0.1 : 1);
    const double rough = (high_ - low_) / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    step_ = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step_ < rough) step_ = factor * power;
    }
    low_ = std::floor(low_ / step_) * step_;
    high_ = std::ceil(high_ / step_) * step_;
  }
  double share(double v) const { return (v - low_) / (high_ - low_); }
  std::vector<double> ticks() const {
    std::vector<double> out;
    for (double v = low_; v <= high_ + 1e-9 * step_; v += step_)
      out.push_back(std::abs(v) < 1e-9 * step_ ? 0 : v);
    return out;
  }

 private:
  double low_ = 0, high_ = 0, step_ = 1;
  bool any_ = false;
};

std::string text_at(double x, double y, const std::string& text, const char* anchor,
                    const std::string& more = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

std::string opening(double height, const std::string& title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
             "fill=\"white\"/>\n",
             kWidth, height, kWidth, height) +
         text_at(kWidth / 2, 24, title, "middle", "font-size=\"15\"");
}

/// From blue (0) over grey to red (1).
std::string shade_colour(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return fmt::format("rgb({:.0f},{:.0f},{:.0f})", 40 + 190 * s, 90 - 40 * s, 220 - 180 * s);
}

}  // namespace

std::string Chart::to_svg() const {
  Axis x, left, right, shade;
  bool has_right = false, has_shade = false;
  for (const ChartSeries& s : series) {
    for (const double v : s.x) x.include(v);
    for (const double v : s.y) (s.right_axis ? right : left).include(v);
    for (const double v : s.shade) shade.include(v);
    has_right |= s.right_axis;
    has_shade |= !s.shade.empty();
  }
  x.finish();
  left.finish();
  right.finish();
  shade.finish();
  const double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom;
  const auto px = [&](double v) { return kLeft + width * x.share(v); };
  const auto py = [&](double v, bool on_right) {
    return kTop + height * (1 - (on_right ? right : left).share(v));
  };

  std::string svg = opening(kHeight, title);
  for (const ChartBand& band : bands) {
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#2ca02c\" opacity=\"0.12\"/>\n",
        px(band.low), kTop, std::max(1.0, px(band.high) - px(band.low)), height);
    svg += text_at(px(0.5 * (band.low + band.high)), kTop + 14, band.label, "middle", "fill=\"#2ca02c\"");
  }
  for (const double tick : x.ticks()) {
    svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\n",
                       px(tick), kTop, kTop + height);
    svg += text_at(px(tick), kTop + height + 18, fmt::format("{:g}", tick), "middle");
  }
  for (const double tick : left.ticks())
    svg += text_at(kLeft - 6, py(tick, false) + 4, fmt::format("{:g}", tick), "end");
  if (has_right) {
    for (const double tick : right.ticks()) {
      svg += text_at(kWidth - kRight + 6, py(tick, true) + 4, fmt::format("{:g}", tick), "start");
    }
  }
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444\"/>\n",
                     kLeft, kTop, width, height);
  svg += text_at(kLeft + width / 2, kTop + height + 38, x_label, "middle");
  svg += text_at(0, 0, y_label, "middle",
                 fmt::format("transform=\"translate(20,{}) rotate(-90)\"", kTop + height / 2));
  if (has_right) {
    svg += text_at(0, 0, right_label, "middle",
                   fmt::format("transform=\"translate({},{}) rotate(90)\"", kWidth - 20, kTop + height / 2));
  }
  std::size_t number = 0;
  double legend = kLeft;
  for (const ChartSeries& s : series) {
    const std::string colour = kColours[number++ % std::size(kColours)];
    if (s.line) {
      std::string points;
      for (std::size_t i = 0; i < s.x.size(); ++i)
        points += fmt::format("{:.1f},{:.1f} ", px(s.x[i]), py(s.y[i], s.right_axis));
      svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                         points, colour);
    } else {
      for (std::size_t i = 0; i < s.x.size(); ++i) {
        const std::string fill = s.shade.empty() ? colour : shade_colour(shade.share(s.shade[i]));
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", px(s.x[i]),
                           py(s.y[i], s.right_axis), fill);
      }
    }
    if (!s.name.empty()) {
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", legend,
                         kTop + height + 48, colour);
      svg += text_at(legend + 14, kTop + height + 57, s.name, "start");
      legend += 30 + 7.0 * static_cast<double>(s.name.size());
    }
  }
  std::string small = note;
  if (has_shade) {
    const auto ticks = shade.ticks();
    small += fmt::format("{}colour: {} from {:g} (blue) to {:g} (red)", small.empty() ? "" : "; ",
                         shade_label, ticks.front(), ticks.back());
  }
  svg += text_at(kLeft, kHeight - 6, small, "start", "font-size=\"11\" fill=\"#666\"");
  return svg + "</svg>\n";
}

std::string BarChart::to_svg() const {
  constexpr double kRow = 26, kLabels = 210;
  const double height = kTop + kRow * static_cast<double>(bars.size()) + 40;
  double largest = 0;
  for (const Bar& bar : bars) largest = std::max(largest, bar.value.value_or(0));
  std::string svg = opening(height, title);
  double y = kTop;
  for (const Bar& bar : bars) {
    svg += text_at(kLabels - 8, y + 15, bar.label, "end");
    const double length = largest > 0 ? (kWidth - kLabels - 230) * bar.value.value_or(0) / largest : 0;
    svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>\n", kLabels,
                       y + 1, std::max(0.0, length), kColours[0]);
    svg += text_at(kLabels + length + 6, y + 15, bar.text, "start");
    y += kRow;
  }
  svg += text_at(20, height - 12, note, "start", "font-size=\"11\" fill=\"#666\"");
  return svg + "</svg>\n";
}

}  // namespace ergotune
