// Scores as one self-contained HTML page.
#include <fmt/format.h>

#include <algorithm>

#include "ergotune/search/score.hpp"

namespace ergotune {
namespace {

constexpr double kWidth = 640, kHeight = 300, kLeft = 60, kRight = 10, kTop = 12, kBottom = 40;
const char* const kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};

const char* colour(std::size_t i) { return kColours[i % std::size(kColours)]; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

struct Axes {
  double x0, x1, y0, y1;
  double x(double v) const {
    return kLeft + (v - x0) / std::max(x1 - x0, 1e-300) * (kWidth - kLeft - kRight);
  }
  double y(double v) const {
    return kHeight - kBottom -
           (std::clamp(v, y0, y1) - y0) / std::max(y1 - y0, 1e-300) * (kHeight - kTop - kBottom);
  }
};

std::string frame(const Axes& axes, const std::string& x_label, const std::string& y_label) {
  std::string svg;
  for (int i = 0; i <= 4; ++i) {
    const double v = axes.y0 + (axes.y1 - axes.y0) * i / 4, t = axes.x0 + (axes.x1 - axes.x0) * i / 4;
    svg += fmt::format("<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>", kLeft,
                       kWidth - kRight, axes.y(v), axes.y(v));
    svg += fmt::format("<text x='{}' y='{:.1f}' text-anchor='end' font-size='11'>{:.3g}</text>", kLeft - 6,
                       axes.y(v) + 4, v);
    svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle' font-size='11'>{:.4g}</text>", axes.x(t),
                       kHeight - kBottom + 16, t);
  }
  svg += fmt::format("<text x='{}' y='{}' text-anchor='middle' font-size='12'>{}</text>", kWidth / 2,
                     kHeight - 6, x_label);
  svg += fmt::format(
      "<text transform='translate(13 {}) rotate(-90)' text-anchor='middle' font-size='12'>{}</text>",
      kHeight / 2, y_label);
  return svg;
}

std::string line(const Axes& axes, const std::vector<double>& x, const std::vector<double>& y,
                 const char* stroke, bool dashed) {
  std::string points;
  for (std::size_t i = 0; i < x.size(); i += 4)
    points += fmt::format("{:.1f},{:.1f} ", axes.x(x[i]), axes.y(y[i]));
  return fmt::format("<polyline fill='none' stroke='{}' stroke-width='1.6'{} points='{}'/>", stroke,
                     dashed ? " stroke-dasharray='5 4'" : "", points);
}

std::string svg(const std::string& content) {
  return fmt::format(
      "<svg viewBox='0 0 {} {}' width='{}' height='{}' xmlns='http://www.w3.org/2000/svg'>{}</svg>\n", kWidth,
      kHeight, kWidth, kHeight, content);
}

std::string legend(const std::vector<StrategyScore>& scores) {
  std::string html = "<p>";
  for (std::size_t s = 0; s < scores.size(); ++s)
    html += fmt::format("<span style='color:{}'>&#9632; {}</span> ", colour(s), escaped(scores[s].strategy));
  return html + "<span style='color:#888'>- - random search (expected)</span></p>\n";
}

std::string table(const std::vector<StrategyScore>& scores) {
  std::string html = "<table><tr><th>strategy</th><th>mean</th><th>evaluations to 1 %</th>";
  if (!scores.empty())
    for (const auto& space : scores.front().spaces) html += fmt::format("<th>{}</th>", escaped(space.space));
  html += "</tr>\n";
  for (const auto& score : scores) {
    html += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.0f}</td>", escaped(score.strategy), score.mean,
                        score.evaluations_to_1_percent);
    for (const auto& space : score.spaces) html += fmt::format("<td>{:.2f}</td>", space.score);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

std::string score_page(const std::vector<StrategyScore>& scores, const std::vector<ScoredSpace>& spaces) {
  std::string html =
      "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>ergotune score</title>"
      "<style>body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:right}"
      "td:first-child,th:first-child{text-align:left}</style><body><h1>Strategies on recorded spaces</h1>"
      "<p>Everything here is replayed. 0 is as good as random search, 1 is the optimum at once.</p>\n";
  html += table(scores) + legend(scores);

  html += "<h2>Over all spaces</h2>\n";
  std::vector<double> share(scores.empty() ? 0 : scores.front().improvement.size());
  for (std::size_t i = 0; i < share.size(); ++i)
    share[i] = static_cast<double>(i) / static_cast<double>(share.size());
  const Axes unit{0, 1, -0.5, 1};
  std::string content = frame(unit, "share of the time to the cut-off", "improvement over random");
  for (std::size_t s = 0; s < scores.size(); ++s)
    content += line(unit, share, scores[s].improvement, colour(s), false);
  html += svg(content);

  for (std::size_t p = 0; p < spaces.size(); ++p) {
    const auto& times = spaces[p].times();
    double worst = spaces[p].baseline().front();
    for (const auto& score : scores) worst = std::max(worst, score.spaces[p].values.front());
    const Axes axes{times.front(), times.back(), spaces[p].optimum(), worst};
    html += fmt::format("<h2>{}</h2>\n", escaped(spaces[p].name()));
    content = frame(axes, "simulated time (s)", "best so far");
    content += line(axes, times, spaces[p].baseline(), "#888", true);
    for (std::size_t s = 0; s < scores.size(); ++s)
      content += line(axes, times, scores[s].spaces[p].values, colour(s), false);
    html += svg(content);
  }
  return html + "</body></html>\n";
}

}  // namespace ergotune
