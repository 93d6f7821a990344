#include "report/recording_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ergotune/error.hpp"
#include "report/result_document.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Json document_of(const Association& a) { return {{"r", a.r}, {"low", a.low}, {"high", a.high}, {"p", a.p}}; }

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

/// A chart with logarithmic axes: the values are exponents of ten, as the labels state.
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

Chart tradeoff_chart(const Recording& recording, const Tradeoff& tradeoff) {
  Chart chart;
  chart.title = fmt::format("{} on {}", recording.name, recording.device);
  chart.x_label = tradeoff.speed_name;
  chart.y_label = tradeoff.efficiency_name;
  chart.shade_label = "core clock in MHz";
  chart.note = "as recorded";
  ChartSeries all{"configurations", {}, {}, false, false, {}}, front{"Pareto front", {}, {}, true, false, {}};
  bool clocks = true;
  for (const TradeoffPoint& p : tradeoff.points) {
    all.x.push_back(p.speed);
    all.y.push_back(p.efficiency);
    all.shade.push_back(p.clock_mhz);
    clocks = clocks && std::isfinite(p.clock_mhz);
  }
  if (!clocks) all.shade.clear();
  for (const std::size_t position : tradeoff.pareto) {
    front.x.push_back(tradeoff.points[position].speed);
    front.y.push_back(tradeoff.points[position].efficiency);
  }
  chart.series = {std::move(all), std::move(front)};
  return chart;
}

Neighbourhood neighbourhood_of(const std::string& name) {
  if (name == "hamming") return Neighbourhood::hamming;
  if (name == "adjacent") return Neighbourhood::adjacent;
  if (name == "strictly_adjacent") return Neighbourhood::strictly_adjacent;
  throw UserError(
      fmt::format("--neighbourhood \"{}\"{}", name, suggestion(name, {"hamming", "adjacent", "strictly_adjacent"})));
}

}  // namespace

RecordingAnalysis analyse_recording(Recording source, const AnalysisOptions& options) {
  const Neighbourhood kind = neighbourhood_of(options.neighbourhood);
  RecordingAnalysis analysis;
  analysis.neighbourhood = options.neighbourhood;
  analysis.recording = std::move(source);
  const std::string selection = analysis.recording.selection();
  if (!selection.empty())
    analysis.recording.warnings.push_back(
        selection + ": what follows is of these, and how hard the whole space is for local search is not known");
  const Recording& recording = analysis.recording;
  const auto warn = [&](const Recording& of) {
    for (const std::string& warning : of.warnings) analysis.warnings.push_back(of.file.string() + ": " + warning);
  };
  warn(recording);
  analysis.tradeoff = analyse_tradeoff(recording);
  if (analysis.tradeoff.points.empty())
    throw UserError(
        fmt::format("{}: none of its {} configurations has a time", recording.file.string(), recording.size()));
  std::vector<Recording> others;
  for (const std::string& peak : options.peaks) {
    others.push_back(load_recording(peak));
    warn(others.back());
  }
  if (options.centrality && selection.empty()) analysis.centrality = centralities(recording, analysis.tradeoff, kind);
  analysis.influences = influences(recording, analysis.tradeoff);
  analysis.levels = levels_of(recording, analysis.tradeoff, "occupancy");
  analysis.sweep = weighted_sweep(analysis.tradeoff);
  analysis.roofline = roofline_of(recording, analysis.tradeoff, others);
  if (!options.peaks.empty() && !analysis.roofline)
    throw UserError(
        "--peaks: the bytes of device memory that a configuration moves were not recorded; observe counters, or its "
        "dram_read_bytes and dram_write_bytes");
  analysis.findings = explain(recording, analysis.tradeoff, analysis.influences, analysis.roofline);
  return analysis;
}

Json analysis_document(const RecordingAnalysis& analysis) {
  const Recording& recording = analysis.recording;
  const Tradeoff& tradeoff = analysis.tradeoff;
  const auto point = [&](std::size_t position) {
    const TradeoffPoint& p = tradeoff.points[position];
    return Json{{"configuration", to_json(recording.parameters, recording.configuration(p.row))},
                {"time", p.time},
                {"energy", number_or_null(p.energy)},
                {"speed", p.speed},
                {"efficiency", number_or_null(p.efficiency)},
                {"core_clock_mhz", number_or_null(p.clock_mhz)}};
  };
  const auto points = [&](const std::vector<std::size_t>& positions) {
    Json list = Json::array();
    for (const std::size_t position : positions) list.push_back(point(position));
    return list;
  };
  Json document{{"file", recording.file.string()},
                {"problem", recording.name},
                {"device", recording.device},
                {"configurations", recording.size()},
                {"usable", tradeoff.points.size()},
                {"speed", tradeoff.speed_name},
                {"efficiency", tradeoff.has_energy ? Json(tradeoff.efficiency_name) : Json(nullptr)},
                {"pareto", points(tradeoff.pareto)},
                {"hull", points(tradeoff.hull)},
                {"quadrants", nullptr},
                {"spread", nullptr}};
  if (tradeoff.quadrants) {
    const Quadrants& q = *tradeoff.quadrants;
    const double all = static_cast<double>(tradeoff.points.size());
    document["quadrants"] = {{"fastest", point(q.fastest)},
                             {"most_efficient", point(q.most_efficient)},
                             {"beat_fastest_in_energy", q.beat_fastest_in_energy},
                             {"beat_fastest_in_energy_share", q.beat_fastest_in_energy / all},
                             {"beat_most_efficient_in_speed", q.beat_most_efficient_in_speed},
                             {"beat_most_efficient_in_speed_share", q.beat_most_efficient_in_speed / all},
                             {"beat_both", q.beat_both},
                             {"energy_saved", q.energy_saved},
                             {"speed_lost", q.speed_lost}};
    document["spread"] = {{"energy_at_equal_speed", tradeoff.spread->energy_at_equal_speed},
                          {"time_at_equal_efficiency", tradeoff.spread->time_at_equal_efficiency},
                          {"energy_within_one_percent", tradeoff.spread->energy_within_one_percent}};
  }
  Json objectives = Json::object();
  for (const auto& [name, c] : analysis.centrality) {
    Json curve = Json::array();
    for (const CentralityPoint& p : c.curve) curve.push_back({{"p", p.p}, {"share", p.share}});
    objectives[name] = {{"configurations", c.configurations},
                        {"minima", c.minima},
                        {"optimum", number_or_null(c.optimum)},
                        {"curve", std::move(curve)}};
  }
  document["centrality"] = {{"neighbourhood", analysis.neighbourhood}, {"objectives", std::move(objectives)}};
  document["notes"] = recording.warnings;
  Json list = Json::array();
  for (const Influence& one : analysis.influences) {
    Json row{{"name", one.name},
             {"kind", one.is_parameter ? "parameter" : "quantity"},
             {"n", one.count},
             {"speed", document_of(one.speed)}};
    if (tradeoff.has_energy) {
      row["efficiency"] = document_of(one.efficiency);
      row["product"] = document_of(one.product);
      row["shift"] = document_of(one.shift);
      row["place"] = {{"speed", one.place_in_speed}, {"efficiency", one.place_in_efficiency}};
      row["moves"] = one.moves;
    }
    list.push_back(std::move(row));
  }
  document["influences"] = std::move(list);
  Json levels = Json::array();
  for (const Level& level : analysis.levels) {
    levels.push_back({{"occupancy", level.value},
                      {"configurations", level.count},
                      {"speed", level.speed},
                      {"speed_error", level.speed_error}});
    if (tradeoff.has_energy)
      levels.back().update({{"efficiency", level.efficiency}, {"efficiency_error", level.efficiency_error}});
  }
  document["occupancy_levels"] = std::move(levels);
  Json sweep = Json::array();
  for (const WeightedBest& best : analysis.sweep) {
    const TradeoffPoint& p = tradeoff.points[best.point];
    sweep.push_back({{"from", best.from},
                     {"to", best.to},
                     {"time", p.time},
                     {"energy", p.energy},
                     {"configuration", to_json(recording.parameters, recording.configuration(p.row))}});
  }
  document["weighted"] = std::move(sweep);
  document["roofline"] = nullptr;
  if (const auto& roofline = analysis.roofline) {
    Json points = Json::array();
    for (const RooflinePoint& p : roofline->points)
      points.push_back({{"row", tradeoff.points[p.point].row},
                        {"intensity", p.intensity},
                        {"rate", p.rate},
                        {"per_joule", number_or_null(p.per_joule)},
                        {"of_roof", p.rate / roofline->roof(p.intensity)}});
    document["roofline"] = {{"operations", roofline->work},
                            {"peaks_from", roofline->peaks},
                            {"peak_rate", roofline->peak_rate},
                            {"peak_bandwidth", roofline->peak_bandwidth},
                            {"peak_per_joule", roofline->peak_per_joule},
                            {"peak_bytes_per_joule", roofline->peak_bytes_per_joule},
                            {"points", std::move(points)}};
  }
  document["findings"] = analysis.findings;
  return document;
}

std::vector<Chart> analysis_charts(const RecordingAnalysis& analysis) {
  const Recording& recording = analysis.recording;
  const Tradeoff& tradeoff = analysis.tradeoff;
  const std::string note = fmt::format("{} configurations, as recorded", tradeoff.points.size());
  std::vector<Chart> charts;
  if (tradeoff.has_energy) charts.push_back(tradeoff_chart(recording, tradeoff));
  if (analysis.levels.size() > 1) charts.push_back(levels_chart(recording, tradeoff, analysis.levels, note));
  if (analysis.roofline) {
    charts.push_back(roofline_chart(recording, *analysis.roofline, false, note));
    if (analysis.roofline->peak_per_joule > 0)
      charts.push_back(roofline_chart(recording, *analysis.roofline, true, note));
  }
  if (charts.empty()) throw UserError("--figure: neither energies nor counters were recorded to draw");
  return charts;
}

}  // namespace ergotune
