#include "report/analysis_section.hpp"

#include <cmath>

#include "ergotune/analysis/centrality.hpp"
#include "ergotune/analysis/tradeoff.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// Fewer say nothing about a space.
constexpr std::size_t kFewest = 10;
/// The fitness flow graph of more takes longer than a page should (about a second).
constexpr std::size_t kMostForCentrality = 20'000;
constexpr std::size_t kMostCorrelations = 12;

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

Json correlations_of(const Tradeoff& tradeoff) {
  Json list = Json::array();
  for (const QuantityCorrelation& c : tradeoff.correlations) {
    if (list.size() == kMostCorrelations) break;
    if (!std::isfinite(c.speed)) continue;
    Json row{{"name", c.name}, {"parameter", c.is_parameter}, {"speed", c.speed}};
    if (tradeoff.has_energy && std::isfinite(c.efficiency)) row["efficiency"] = c.efficiency;
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

Json analysis_section(const Recording& recording) {
  const Tradeoff tradeoff = analyse_tradeoff(recording);
  if (tradeoff.points.size() < kFewest) return nullptr;
  Json section = Json::object();
  if (tradeoff.has_energy && tradeoff.quadrants && tradeoff.spread)
    section["hull"] = hull_of(recording, tradeoff);
  section["correlations"] = correlations_of(tradeoff);
  if (tradeoff.points.size() <= kMostForCentrality)
    section["centrality"] = centrality_of(recording, tradeoff);
  return section;
}

}  // namespace ergotune
