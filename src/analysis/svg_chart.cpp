#include "analysis/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergotune {
namespace {

constexpr double kWidth = 760, kHeight = 460, kLeft = 80, kRight = 80, kTop = 50, kBottom = 80;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLegendRow = 16;
const char* const kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                "#8c564b", "#17becf", "#e377c2", "#bcbd22", "#7f7f7f"};
const char* const kGrey = "#888";

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
    for (double v = low_; v <= high_ + 1e-9 * step_; v += step_) out.push_back(std::abs(v) < 1e-9 * step_ ? 0 : v);
    return out;
  }

 private:
  double low_ = 0, high_ = 0, step_ = 1;
  bool any_ = false;
};

std::string text_at(double x, double y, const std::string& text, const char* anchor, const std::string& more = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                     escape_markup(text));
}

/// From blue (0) over grey to red (1).
std::string shade_colour(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return fmt::format("rgb({:.0f},{:.0f},{:.0f})", 40 + 190 * s, 90 - 40 * s, 220 - 180 * s);
}

/// Draws a chart: determines axes that include all values, then draws the parts one after the other.
class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    for (const ChartSeries& s : chart.series) {
      for (const double v : s.x) x_.include(v);
      if (s.right_axis || !chart.y_limits)
        for (const double v : s.y) (s.right_axis ? right_ : left_).include(v);
      for (const double v : s.shade) shade_.include(v);
      has_right_ |= s.right_axis;
      has_shade_ |= !s.shade.empty();
    }
    if (chart.y_limits) {
      left_.include(chart.y_limits->first);
      left_.include(chart.y_limits->second);
    }
    for (Axis* axis : {&x_, &left_, &right_, &shade_}) axis->finish();
  }

  std::string svg() {
    const std::string legend = this->legend();  // first: its height determines the height of the chart
    std::string svg = text_at(kWidth / 2, 24, chart_.title, "middle", "font-size=\"15\"") + bands() + ticks() + frame();
    std::size_t number = 0;
    for (const ChartSeries& s : chart_.series) svg += curve(s, colour(s, number));
    return svg + legend + text_at(kLeft, height() - 6, note(), "start", "font-size=\"11\" fill=\"#666\"");
  }
  /// Valid once the chart is drawn.
  double height() const { return kHeight + legend_rows_ * kLegendRow; }

 private:
  double px(double v) const { return kLeft + kPlotWidth * x_.share(v); }
  double py(double v, bool on_right) const {
    const double share = (on_right ? right_ : left_).share(v);
    return kTop + kPlotHeight * (1 - (chart_.y_limits ? std::clamp(share, 0.0, 1.0) : share));
  }
  static const char* colour(const ChartSeries& s, std::size_t& number) {
    return s.dashed ? kGrey : kColours[number++ % std::size(kColours)];
  }

  std::string bands() const {
    std::string svg;
    for (const ChartBand& band : chart_.bands) {
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#2ca02c\" opacity=\"0.12\"/>\n",
          px(band.low), kTop, std::max(1.0, px(band.high) - px(band.low)), kPlotHeight);
      svg += text_at(px(0.5 * (band.low + band.high)), kTop + 14, band.label, "middle", "fill=\"#2ca02c\"");
    }
    return svg;
  }

  std::string ticks() const {
    std::string svg;
    for (const double tick : x_.ticks()) {
      svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\n", px(tick),
                         kTop, kTop + kPlotHeight);
      svg += text_at(px(tick), kTop + kPlotHeight + 18, fmt::format("{:g}", tick), "middle");
    }
    for (const double tick : left_.ticks())
      svg += text_at(kLeft - 6, py(tick, false) + 4, fmt::format("{:g}", tick), "end");
    if (!has_right_) return svg;
    for (const double tick : right_.ticks())
      svg += text_at(kWidth - kRight + 6, py(tick, true) + 4, fmt::format("{:g}", tick), "start");
    return svg;
  }

  std::string frame() const {
    const double middle = kTop + kPlotHeight / 2;
    std::string svg =
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft, kTop,
                    kPlotWidth, kPlotHeight);
    svg += text_at(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 38, chart_.x_label, "middle");
    svg += text_at(0, 0, chart_.y_label, "middle", fmt::format("transform=\"translate(20,{}) rotate(-90)\"", middle));
    if (has_right_) {
      svg += text_at(0, 0, chart_.right_label, "middle",
                     fmt::format("transform=\"translate({},{}) rotate(90)\"", kWidth - 20, middle));
    }
    return svg;
  }

  std::string curve(const ChartSeries& s, const std::string& colour) const {
    if (s.line) {
      std::string points;
      for (std::size_t i = 0; i < s.x.size(); ++i)
        points += fmt::format("{:.1f},{:.1f} ", px(s.x[i]), py(s.y[i], s.right_axis));
      return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", points,
                         colour, s.dashed ? " stroke-dasharray=\"5 4\"" : "");
    }
    std::string svg;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const std::string fill = s.shade.empty() ? colour : shade_colour(shade_.share(s.shade[i]));
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", px(s.x[i]),
                         py(s.y[i], s.right_axis), fill);
    }
    return svg;
  }

  std::string legend() {
    std::string svg;
    double x = kLeft;
    std::size_t number = 0;
    for (const ChartSeries& s : chart_.series) {
      const std::string fill = colour(s, number);
      if (s.name.empty()) continue;
      const double width = 30 + 7.0 * static_cast<double>(s.name.size());
      if (x > kLeft && x + width > kWidth - kRight / 2) {
        x = kLeft;
        ++legend_rows_;
      }
      const double y = kTop + kPlotHeight + 48 + legend_rows_ * kLegendRow;
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x, y, fill);
      svg += text_at(x + 14, y + 9, s.name, "start");
      x += width;
    }
    return svg;
  }

  std::string note() const {
    if (!has_shade_) return chart_.note;
    const auto ticks = shade_.ticks();
    return fmt::format("{}{}colour: {} from {:g} (blue) to {:g} (red)", chart_.note, chart_.note.empty() ? "" : "; ",
                       chart_.shade_label, ticks.front(), ticks.back());
  }

  const Chart& chart_;
  Axis x_, left_, right_, shade_;
  bool has_right_ = false, has_shade_ = false;
  int legend_rows_ = 0;  ///< in addition to the first
};

constexpr int kLabelColumn = 260, kBarColumn = 440, kAmountColumn = 150, kFirstRow = 54, kRowHeight = 26,
              kBarHeight = 15;
constexpr std::size_t kLongestLabel = 38;  // longest label, in characters

std::string shortened(const std::string& label) {
  if (label.size() <= kLongestLabel) return label;
  std::size_t end = kLongestLabel - 3;
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;  // cut between UTF-8 characters
  return label.substr(0, end) + "...";
}

class PruningBars {
 public:
  explicit PruningBars(double largest) : decades_(std::max(1.0, std::ceil(std::log10(std::max(10.0, largest))))) {}

  void row(const std::string& label, double count, double part, const char* colour) {
    const int y = kFirstRow + rows_++ * kRowHeight;
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>\n", kLabelColumn - 8,
                        y + 12, escape_markup(shortened(label)), escape_markup(label));
    bar(y, count, colour);
    if (part > 0) bar(y, part, "#b3261e");
    const std::string amount = std::isnan(count) ? "not counted" : fmt::format("{:.6g}", count);
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" fill=\"#444\" font-size=\"11\">{}{}</text>\n",
                        kLabelColumn + width(count) + 5, y + 12, amount, part > 0 ? fmt::format(", {:.6g}", part) : "");
  }

  std::string svg(const std::string& title) const {
    const int height = kFirstRow + rows_ * kRowHeight + 34, wide = kLabelColumn + kBarColumn + kAmountColumn;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<text x=\"8\" y=\"20\" font-size=\"15\">{}</text>\n"
        "<text x=\"8\" y=\"38\" fill=\"#555\">configurations; of restrictions: removed alone, and removed by nothing "
        "else (dark)</text>\n",
        wide, height, escape_markup(title));
    const int step = std::max(1, static_cast<int>(decades_) / 8);
    for (int decade = 0; decade <= static_cast<int>(decades_); decade += step) {
      const double x = kLabelColumn + kBarColumn * decade / decades_;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#555\">1e{4}</text>\n",
          x, kFirstRow - 4, height - 28, height - 12, decade);
    }
    return out + svg_ + "</svg>\n";
  }

 private:
  double width(double count) const { return count >= 1 ? kBarColumn * std::log10(count) / decades_ : 0; }
  void bar(int y, double count, const char* colour) {
    if (count < 1 || std::isnan(count)) return;
    svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", kLabelColumn, y,
                        std::max(1.0, width(count)), kBarHeight, colour);
  }

  double decades_;
  int rows_ = 0;
  std::string svg_;
};

}  // namespace

std::string escape_markup(std::string_view text) {
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

std::string to_svg(const std::vector<Chart>& charts) {
  double height = 0;
  std::string inside;
  for (const Chart& chart : charts) {
    Drawing drawing(chart);
    inside += fmt::format("<g transform=\"translate(0,{})\">\n{}</g>\n", height, drawing.svg());
    height += drawing.height();
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n{2}</svg>\n",
      kWidth, height, inside);
}

std::string pruning_figure(const SearchSpace& space, const std::vector<RestrictionEffect>& effects) {
  PruningBars bars(space.cartesian_size());
  bars.row("all values of all parameters", space.cartesian_size(), 0, "#9aa4b2");
  for (const RestrictionEffect& effect : effects)
    bars.row(effect.label, effect.removed_alone, effect.redundant ? 0 : effect.removed_only_by_it, "#e8a09a");
  bars.row("valid", static_cast<double>(space.size()), 0, "#2f7d4f");
  return bars.svg("What restrictions remove");
}

}  // namespace ergotune
