#include "report/score_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/svg_chart.hpp"

namespace ergotune {
namespace {

/// Every fourth of a curve's thousand points draws the same line.
constexpr std::size_t kThinned = 4;

ChartSeries curve(const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
  ChartSeries series{name, {}, {}, true, false, {}};
  for (std::size_t i = 0; i < x.size(); i += kThinned) {
    series.x.push_back(x[i]);
    series.y.push_back(y[i]);
  }
  return series;
}

std::string table(const std::vector<StrategyScore>& scores) {
  std::string html = "<table><tr><th>strategy</th><th>mean</th><th>evaluations to 1 %</th>";
  if (!scores.empty())
    for (const auto& space : scores.front().spaces) html += fmt::format("<th>{}</th>", escape_markup(space.space));
  html += "</tr>\n";
  for (const auto& score : scores) {
    html += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.0f}</td>", escape_markup(score.strategy), score.mean,
                        score.evaluations_to_1_percent);
    for (const auto& space : score.spaces) html += fmt::format("<td>{:.2f}</td>", space.score);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string over_all_spaces(const std::vector<StrategyScore>& scores) {
  Chart chart;
  chart.title = "Over all spaces";
  chart.x_label = "share of the time to the cut-off";
  chart.y_label = "improvement over random";
  chart.y_limits = {-0.5, 1};
  std::vector<double> share(scores.empty() ? 0 : scores.front().improvement.size());
  for (std::size_t i = 0; i < share.size(); ++i) share[i] = static_cast<double>(i) / static_cast<double>(share.size());
  for (const StrategyScore& score : scores) chart.series.push_back(curve(score.strategy, share, score.improvement));
  return chart.to_svg();
}

std::string over_time(const std::vector<StrategyScore>& scores, const ScoredSpace& space, std::size_t position) {
  Chart chart;
  chart.title = space.name();
  chart.x_label = "simulated time (s)";
  chart.y_label = "best so far";
  double worst = space.baseline().front();
  for (const StrategyScore& score : scores) {
    const SpaceScore& own = score.spaces[position];
    worst = std::max(worst, own.values.front());
    chart.series.push_back(curve(score.strategy, space.times(), own.values));
  }
  chart.y_limits = {space.optimum(), worst};
  ChartSeries random = curve("random search (expected)", space.times(), space.baseline());
  random.dashed = true;
  chart.series.push_back(std::move(random));
  return chart.to_svg();
}

}  // namespace

std::string score_page(const std::vector<StrategyScore>& scores, const std::vector<ScoredSpace>& spaces) {
  std::string html =
      "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>ergotune score</title>"
      "<style>body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:right}"
      "td:first-child,th:first-child{text-align:left}svg{display:block;margin:1em 0}</style>"
      "<body><h1>Strategies on recorded spaces</h1>"
      "<p>Everything here is replayed. 0 is as good as random search, 1 is the optimum at once.</p>\n";
  html += table(scores) + over_all_spaces(scores);
  for (std::size_t p = 0; p < spaces.size(); ++p) html += over_time(scores, spaces[p], p);
  return html + "</body></html>\n";
}

}  // namespace ergotune
