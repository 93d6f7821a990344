#include "analysis/influence_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/svg_chart.hpp"

namespace ergotune {
namespace {

constexpr double kSignificant = 0.05;

/// A name as it may stand in a file's.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  return plain;
}

Chart levels_chart(const Recording& recording, const Tradeoff& tradeoff, const std::vector<Level>& levels,
                   const std::string& note) {
  Chart chart;
  chart.title = fmt::format("{} on {}: means by occupancy", recording.name, recording.device);
  chart.x_label = "occupancy";
  chart.y_label = tradeoff.speed_name;
  chart.right_label = tradeoff.has_energy ? tradeoff.efficiency_name : "";
  chart.note = note;
  ChartSeries speed{tradeoff.speed_name, {}, {}, true, false, {}},
      efficiency{tradeoff.efficiency_name, {}, {}, true, true, {}};
  for (const Level& level : levels) {
    speed.x.push_back(level.value);
    speed.y.push_back(level.speed);
    efficiency.x.push_back(level.value);
    efficiency.y.push_back(level.efficiency);
  }
  chart.series = {speed};
  if (tradeoff.has_energy) chart.series.push_back(efficiency);
  return chart;
}

/// On logarithmic axes: the labels say so, the numbers are exponents of ten.
Chart roofline_chart(const Recording& recording, const Roofline& roofline, bool energy, const std::string& note) {
  Chart chart;
  chart.title = fmt::format("{} on {}: roofline of {}", recording.name, recording.device, energy ? "energy" : "time");
  chart.x_label = "log10 of operations per byte of device memory";
  chart.y_label = energy ? "log10 of operations per J" : "log10 of operations per s";
  chart.note = fmt::format("{}; operations: {}; roofs: {}", note, roofline.work, roofline.peaks);
  ChartSeries points{"configurations", {}, {}, false, false, {}}, roof{"roof", {}, {}, true, false, {}};
  double low = 1e300, high = 0;
  for (const RooflinePoint& p : roofline.points) {
    const double y = energy ? p.per_joule : p.rate;
    if (!(y > 0)) continue;
    points.x.push_back(std::log10(p.intensity));
    points.y.push_back(std::log10(y));
    low = std::min(low, p.intensity);
    high = std::max(high, p.intensity);
  }
  const double ridge =
      energy ? roofline.peak_per_joule / roofline.peak_bytes_per_joule : roofline.peak_rate / roofline.peak_bandwidth;
  for (const double x : {std::min(low, ridge) / 4, ridge, std::max(high, ridge) * 4}) {
    roof.x.push_back(std::log10(x));
    roof.y.push_back(std::log10(energy ? roofline.energy_roof(x) : roofline.roof(x)));
  }
  chart.series = {points, roof};
  return chart;
}

}  // namespace

std::string correlation_figure(const std::vector<Influence>& influences, Association Influence::*which,
                               const std::string& title, const std::string& note) {
  std::vector<const Influence*> sorted;
  for (const Influence& one : influences) sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto* a, const auto* b) { return (a->*which).r < (b->*which).r; });
  constexpr double kTop = 50, kRow = 20, kLabels = 290, kHalf = 210, kWidth = 760;
  const double height = kTop + kRow * static_cast<double>(sorted.size()) + 60, zero = kLabels + kHalf;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{2}\" y=\"24\" "
      "text-anchor=\"middle\" "
      "font-size=\"15\">{3}</text>\n",
      kWidth, height, kWidth / 2, escape_markup(title));
  const double bottom = height - 50;
  for (const double tick : {-1.0, -0.5, 0.0, 0.5, 1.0})
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\n<text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4:g}</text>\n",
        zero + kHalf * tick, kTop - 6, bottom, bottom + 16, tick);
  double y = kTop;
  for (const Influence* one : sorted) {
    const Association& a = one->*which;
    const double from = zero + kHalf * std::min(0.0, a.r), length = kHalf * std::abs(a.r);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\"{}{}>{}</text>\n", kLabels - 8, y + 13,
                       one->moves ? " font-weight=\"bold\"" : "", one->is_parameter ? " font-style=\"italic\"" : "",
                       escape_markup(one->name));
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" fill=\"{}\" opacity=\"{}\"/>\n",
                       from, y + 3, length, a.r < 0 ? "#d62728" : "#1f77b4", a.p < kSignificant ? "1" : "0.35");
    svg += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#222\"/>\n",
                       zero + kHalf * a.low, zero + kHalf * a.high, y + 9, y + 9);
    y += kRow;
  }
  svg += fmt::format("<text x=\"20\" y=\"{}\" font-size=\"11\" fill=\"#666\">{}</text>\n", height - 10,
                     escape_markup(note));
  return svg + "</svg>\n";
}

std::vector<NamedFigure> above_and_below(const Recording& recording, const Tradeoff& tradeoff,
                                         const std::string& metric, const std::string& note) {
  const RecordedColumn* column = recording.column(metric);
  if (!column) return {};
  double sum = 0;
  std::size_t count = 0;
  for (const TradeoffPoint& p : tradeoff.points)
    if (const double v = column->value[p.row]; std::isfinite(v)) sum += v, ++count;
  if (count == 0) return {};
  const double middle = sum / static_cast<double>(count);
  const auto chart = [&](const std::string& x_label, const std::string& y_label, auto&& x, auto&& y) {
    Chart made;
    made.title = fmt::format("{}: above and below its mean, {:.4g}", metric, middle);
    made.x_label = x_label;
    made.y_label = y_label;
    made.note = note;
    ChartSeries below{"below", {}, {}, false, false, {}}, above{"above", {}, {}, false, false, {}};
    for (const TradeoffPoint& p : tradeoff.points) {
      const double v = column->value[p.row];
      if (!std::isfinite(v)) continue;
      ChartSeries& side = v > middle ? above : below;
      side.x.push_back(x(p, v));
      side.y.push_back(y(p, v));
    }
    made.series = {below, above};
    return made.to_svg();
  };
  const auto value = [](const TradeoffPoint&, double v) { return v; };
  const auto speed = [](const TradeoffPoint& p, double) { return p.speed; };
  const auto efficiency = [](const TradeoffPoint& p, double) { return p.efficiency; };
  const std::string stem = "figure9-" + plain_name(metric);
  std::vector<NamedFigure> figures{{stem + "-speed.svg", chart(tradeoff.speed_name, metric, speed, value)}};
  if (!tradeoff.has_energy) return figures;
  figures.emplace_back(stem + "-efficiency.svg", chart(tradeoff.efficiency_name, metric, efficiency, value));
  figures.emplace_back(stem + "-plane.svg", chart(tradeoff.speed_name, tradeoff.efficiency_name, speed, efficiency));
  return figures;
}

std::vector<std::string> usual_figure_metrics(const Recording& recording) {
  std::vector<std::string> metrics;
  for (const auto& choices : std::vector<std::vector<const char*>>{{"occupancy", "achieved_occupancy"},
                                                                   {"ipc"},
                                                                   {"dram_read_throughput"},
                                                                   {"l2_read_throughput"},
                                                                   {"tex_throughput"}})
    for (const char* name : choices)
      if (recording.column(name)) {
        metrics.emplace_back(name);
        break;
      }
  return metrics;
}

std::vector<NamedFigure> influence_figures(const Recording& recording, const Tradeoff& tradeoff,
                                           const std::vector<Influence>& influences,
                                           const std::optional<Roofline>& roofline,
                                           const std::vector<std::string>& metrics) {
  const std::string note = fmt::format("{} configurations, as recorded", tradeoff.points.size());
  std::vector<NamedFigure> figures;
  if (!influences.empty()) {
    const std::string small =
        note + "; lines: 95 % of a bootstrap; pale: p > 0.05 after Holm; bold: moves; italic: parameter";
    const std::string title = recording.name + " on " + recording.device + ": correlation with ";
    figures.emplace_back("figure6.svg",
                         correlation_figure(influences, &Influence::speed, title + tradeoff.speed_name, small));
    if (tradeoff.has_energy) {
      figures.emplace_back("figure7.svg", correlation_figure(influences, &Influence::efficiency,
                                                             title + tradeoff.efficiency_name, small));
      figures.emplace_back("figure8.svg",
                           correlation_figure(influences, &Influence::product, title + "their product", small));
    }
  }
  for (const std::string& metric : metrics)
    for (NamedFigure& figure : above_and_below(recording, tradeoff, metric, note)) figures.push_back(std::move(figure));
  if (const auto levels = levels_of(recording, tradeoff, "occupancy"); levels.size() > 1)
    figures.emplace_back("occupancy.svg", levels_chart(recording, tradeoff, levels, note).to_svg());
  if (roofline) {
    figures.emplace_back("roofline.svg", roofline_chart(recording, *roofline, false, note).to_svg());
    if (roofline->peak_per_joule > 0)
      figures.emplace_back("roofline-energy.svg", roofline_chart(recording, *roofline, true, note).to_svg());
  }
  return figures;
}

}  // namespace ergotune
