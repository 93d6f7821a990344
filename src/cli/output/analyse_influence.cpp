#include "cli/output/analyse_influence.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/influence_figures.hpp"
#include "base/files.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/results.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

Json document_of(const Association& a) { return {{"r", a.r}, {"low", a.low}, {"high", a.high}, {"p", a.p}}; }

std::string table_of(const std::vector<Influence>& influences) {
  std::string text = "name,kind,n";
  for (const char* what : {"speed", "efficiency", "product", "shift"})
    text += fmt::format(",{0},{0}_low,{0}_high,{0}_p", what);
  text += ",moves\n";
  for (const Influence& one : influences) {
    text += fmt::format("{},{},{}", one.name, one.is_parameter ? "parameter" : "quantity", one.count);
    for (const Association* a : {&one.speed, &one.efficiency, &one.product, &one.shift})
      text += fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g}", a->r, a->low, a->high, a->p);
    text += one.moves ? ",1\n" : ",0\n";
  }
  return text;
}

}  // namespace

InfluenceAnalysis analyse_influence(const Recording& recording, const Tradeoff& tradeoff,
                                    const std::vector<std::string>& peaks) {
  InfluenceAnalysis analysis;
  std::vector<Recording> others;
  for (const std::string& file : peaks) {
    others.push_back(load_recording(file));
    print_warnings(file, others.back().warnings);
  }
  analysis.influences = influences(recording, tradeoff);
  analysis.levels = levels_of(recording, tradeoff, "occupancy");
  analysis.sweep = weighted_sweep(tradeoff);
  analysis.roofline = roofline_of(recording, tradeoff, others);
  if (!peaks.empty() && !analysis.roofline)
    throw UserError(
        "--peaks: nothing was recorded that says how many bytes of device memory a configuration moves; observe "
        "counters, or its dram_read_bytes and dram_write_bytes");
  analysis.words = explain(recording, tradeoff, analysis.influences, analysis.roofline);
  return analysis;
}

void add_to_document(Json& document, const Recording& recording, const Tradeoff& tradeoff,
                     const InfluenceAnalysis& analysis) {
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
  document["words"] = analysis.words;
}

void print_influence(const Recording& recording, const Tradeoff& tradeoff, const InfluenceAnalysis& analysis) {
  if (analysis.influences.empty()) {
    fmt::print("\nToo few configurations, or nothing that varies, to say what goes with speed.\n");
  } else {
    fmt::print("\nCorrelation with {:<24} {:<24} {:<24} n\n", tradeoff.speed_name,
               tradeoff.has_energy ? tradeoff.efficiency_name : "", tradeoff.has_energy ? "their product" : "");
    const auto cell = [](const Association& a) {
      return fmt::format("{:+.2f} ({:+.2f} to {:+.2f}){}", a.r, a.low, a.high, a.p < 0.05 ? "*" : " ");
    };
    constexpr std::size_t kShown = 40;
    for (std::size_t i = 0; i < analysis.influences.size() && i < kShown; ++i) {
      const Influence& one = analysis.influences[i];
      fmt::print("  {:<30} {}", one.name, cell(one.speed));
      if (tradeoff.has_energy) fmt::print("  {}  {}", cell(one.efficiency), cell(one.product));
      fmt::print("  {}{}\n", one.count, one.moves ? "  moves" : "");
    }
    fmt::print(
        "  in brackets: 95 % of a bootstrap; *: p < 0.05 after Holm's correction; moves: its place changes between "
        "speed and efficiency\n");
  }
  if (analysis.levels.size() > 1) {
    fmt::print("\nBy occupancy:\n");
    for (const Level& level : analysis.levels) {
      fmt::print("  {:>5.1f} %  {:>5} configurations, {:.4g} {}", 100 * level.value, level.count, level.speed,
                 tradeoff.speed_name);
      if (tradeoff.has_energy) fmt::print(", {:.4g} {}", level.efficiency, tradeoff.efficiency_name);
      fmt::print("\n");
    }
  }
  if (!analysis.sweep.empty()) {
    fmt::print("\nBest by a t/t0 + (1-a) e/e0, a the weight of time:\n");
    for (const WeightedBest& best : analysis.sweep) {
      const TradeoffPoint& p = tradeoff.points[best.point];
      fmt::print("  a {:.3f} to {:.3f}  {:>10} {:>10}  {}\n", best.from, best.to, human(p.time, "s"),
                 human(p.energy, "J"), describe(recording.parameters, recording.configuration(p.row)));
    }
  }
  if (!analysis.words.empty()) fmt::print("\n");
  for (const std::string& words : analysis.words) fmt::print("{}\n", words);
}

std::size_t write_figures(const std::string& folder, const Recording& recording, const Tradeoff& tradeoff,
                          const InfluenceAnalysis& analysis, std::vector<std::string> metrics) {
  std::vector<std::string> known;
  for (const RecordedColumn& column : recording.columns) known.push_back(column.name);
  for (const std::string& metric : metrics)
    if (!recording.column(metric))
      throw UserError(
          fmt::format("--metric \"{}\": nothing of that name was recorded{}", metric, suggestion(metric, known)));
  if (metrics.empty()) metrics = usual_figure_metrics(recording);
  std::error_code trouble;
  std::filesystem::create_directories(folder, trouble);
  if (trouble) throw UserError(fmt::format("--figures: the folder {} cannot be made: {}", folder, trouble.message()));
  const auto figures = influence_figures(recording, tradeoff, analysis.influences, analysis.roofline, metrics);
  for (const auto& [name, content] : figures) write_named_file(std::filesystem::path(folder) / name, content);
  write_named_file(std::filesystem::path(folder) / "influences.csv", table_of(analysis.influences));
  return figures.size();
}

}  // namespace ergotune::cli
