#include "report/analysis_section.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/centrality.hpp"
#include "analysis/influence.hpp"
#include "analysis/tradeoff.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// Fewer say nothing about a space.
constexpr std::size_t kFewest = 10;
/// The fitness flow graph of more takes longer than a page should (about a second).
constexpr std::size_t kMostForCentrality = 20'000;
constexpr std::size_t kMostCorrelations = 12;
/// Of a smaller share of the space the neighbours are missing, and nearly everything looks like a minimum.
constexpr double kShareForCentrality = 0.9;

/// How many configurations are faster, more efficient, both or neither than the default.
Json against_default(const Tradeoff& tradeoff, std::size_t default_row) {
  const auto found = std::find_if(tradeoff.points.begin(), tradeoff.points.end(),
                                  [&](const TradeoffPoint& p) { return p.row == default_row; });
  if (found == tradeoff.points.end()) return nullptr;
  std::size_t both = 0, faster = 0, thriftier = 0;
  for (const TradeoffPoint& p : tradeoff.points) {
    const bool less_time = p.time < found->time, less_energy = p.energy < found->energy;
    both += less_time && less_energy;
    faster += less_time && !less_energy;
    thriftier += less_energy && !less_time;
  }
  return {
      {"of", tradeoff.points.size() - 1}, {"both", both}, {"only_faster", faster}, {"only_more_efficient", thriftier}};
}

Json hull_of(const Recording& recording, const Tradeoff& tradeoff) {
  const auto point = [&](std::size_t position) {
    const TradeoffPoint& p = tradeoff.points[position];
    return Json{{"speed", p.speed},
                {"efficiency", p.efficiency},
                {"time", p.time},
                {"energy", p.energy},
                {"configuration", describe(recording.parameters, recording.configuration(p.row))}};
  };
  Json corners = Json::array();
  for (const std::size_t position : tradeoff.hull) corners.push_back(point(position));
  const Quadrants& q = *tradeoff.quadrants;
  return {{"speed", tradeoff.speed_name},
          {"efficiency", tradeoff.efficiency_name},
          {"corners", std::move(corners)},
          {"fastest", point(q.fastest)},
          {"most_efficient", point(q.most_efficient)},
          {"beat_fastest_in_energy", q.beat_fastest_in_energy},
          {"beat_most_efficient_in_speed", q.beat_most_efficient_in_speed},
          {"beat_both", q.beat_both},
          {"energy_saved", q.energy_saved},
          {"speed_lost", q.speed_lost},
          {"energy_within_one_percent", tradeoff.spread->energy_within_one_percent}};
}

Json correlations_of(const Recording& recording, const Tradeoff& tradeoff, const std::vector<Influence>& influences) {
  // Time, energy and metrics made of them correlate with themselves.
  const auto follows_from_them = [&](const QuantityCorrelation& c) {
    const RecordedColumn* column = c.is_parameter ? nullptr : recording.column(c.name);
    return column && (column->is_metric || c.name == "time" || c.name.ends_with("energy") ||
                      c.name == tradeoff.speed_name || c.name == tradeoff.efficiency_name);
  };
  const auto interval = [](const Association& a) { return Json{{"low", a.low}, {"high", a.high}, {"p", a.p}}; };
  Json list = Json::array();
  for (const QuantityCorrelation& c : tradeoff.correlations) {
    if (list.size() == kMostCorrelations) break;
    if (!std::isfinite(c.speed) || follows_from_them(c)) continue;
    Json row{{"name", c.name}, {"parameter", c.is_parameter}, {"speed", c.speed}};
    if (tradeoff.has_energy && std::isfinite(c.efficiency)) row["efficiency"] = c.efficiency;
    const auto known = std::find_if(influences.begin(), influences.end(), [&](const Influence& one) {
      return one.name == c.name && one.is_parameter == c.is_parameter;
    });
    if (known != influences.end()) {
      row["speed_interval"] = interval(known->speed);
      if (tradeoff.has_energy) {
        row["efficiency_interval"] = interval(known->efficiency);
        row["moves"] = known->moves;
      }
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json centrality_of(const Recording& recording, const Tradeoff& tradeoff) {
  Json list = Json::array();
  for (const auto& [name, centrality] : centralities(recording, tradeoff)) {
    if (centrality.minima == 0) continue;
    Json curve = Json::array();
    for (const CentralityPoint& p : centrality.curve) curve.push_back({p.p, p.share});
    list.push_back({{"name", name}, {"minima", centrality.minima}, {"curve", std::move(curve)}});
  }
  return list;
}

}  // namespace

Json analysis_section(const Recording& recording, const AnalysisContext& context) {
  const Tradeoff tradeoff = analyse_tradeoff(recording);
  if (tradeoff.points.size() < kFewest) return nullptr;
  Json section = Json::object();
  if (tradeoff.has_energy && tradeoff.quadrants && tradeoff.spread) section["hull"] = hull_of(recording, tradeoff);
  if (tradeoff.has_energy && context.default_row)
    section["against_default"] = against_default(tradeoff, *context.default_row);
  const std::vector<Influence> found = influences(recording, tradeoff);
  section["correlations"] = correlations_of(recording, tradeoff, found);
  section["words"] = explain(recording, tradeoff, found, roofline_of(recording, tradeoff));
  const bool whole = static_cast<double>(recording.size()) >= kShareForCentrality * static_cast<double>(context.space);
  if (whole && tradeoff.points.size() <= kMostForCentrality) section["centrality"] = centrality_of(recording, tradeoff);
  return section;
}

}  // namespace ergotune
