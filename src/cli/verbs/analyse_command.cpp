// ergotune analyse: what a recording says about the trade between time and energy, and how hard it is to
// search.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/centrality.hpp"
#include "analysis/svg_chart.hpp"
#include "analysis/tradeoff.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/analyse_influence.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/results.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AnalyseArguments {
  std::string file, figure, figures, neighbourhood = "hamming";
  std::vector<std::string> metrics, peaks;
  std::int64_t session = 0;
  bool json = false;
};

Neighbourhood neighbourhood_of(const std::string& name) {
  if (name == "hamming") return Neighbourhood::hamming;
  if (name == "adjacent") return Neighbourhood::adjacent;
  if (name == "strictly_adjacent") return Neighbourhood::strictly_adjacent;
  throw UserError(
      fmt::format("--neighbourhood \"{}\"{}", name, suggestion(name, {"hamming", "adjacent", "strictly_adjacent"})));
}

Json document_of(const Recording& recording, const Tradeoff& tradeoff, const std::vector<NamedCentrality>& centrality,
                 const AnalyseArguments& arguments) {
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
  Json correlations = Json::array();
  for (const QuantityCorrelation& c : tradeoff.correlations) {
    correlations.push_back({{"name", c.name},
                            {"kind", c.is_parameter ? "parameter" : "quantity"},
                            {"speed", c.speed},
                            {"efficiency", tradeoff.has_energy ? Json(c.efficiency) : Json(nullptr)},
                            {"product", tradeoff.has_energy ? Json(c.product) : Json(nullptr)},
                            {"n", c.count}});
  }
  document["correlations"] = std::move(correlations);
  Json objectives = Json::object();
  for (const auto& [name, c] : centrality) {
    Json curve = Json::array();
    for (const CentralityPoint& p : c.curve) curve.push_back({{"p", p.p}, {"share", p.share}});
    objectives[name] = {{"configurations", c.configurations},
                        {"minima", c.minima},
                        {"optimum", number_or_null(c.optimum)},
                        {"curve", std::move(curve)}};
  }
  document["centrality"] = {{"neighbourhood", arguments.neighbourhood}, {"objectives", std::move(objectives)}};
  document["notes"] = recording.warnings;
  return document;
}

double share_at(const Centrality& centrality, double p) {
  for (const CentralityPoint& point : centrality.curve) {
    if (std::abs(point.p - p) < 1e-9) return point.share;
  }
  return std::nan("");
}

void print_for_people(const Recording& recording, const Tradeoff& tradeoff, const InfluenceAnalysis& influence,
                      const std::vector<NamedCentrality>& centrality) {
  fmt::print("{} on {}: {} configurations recorded, {} usable\n", recording.name,
             recording.device.empty() ? "an unnamed device" : recording.device, recording.size(),
             tradeoff.points.size());
  const auto line = [&](std::size_t position) {
    const TradeoffPoint& p = tradeoff.points[position];
    return fmt::format("{:>10} {:>10}  {}", human(p.time, "s"),
                       std::isfinite(p.energy) ? human(p.energy, "J") : std::string("-"),
                       describe(recording.parameters, recording.configuration(p.row)));
  };
  constexpr std::size_t kShown = 12;
  fmt::print("\nPareto front of time and energy, {} configurations:\n", tradeoff.pareto.size());
  for (std::size_t i = 0; i < tradeoff.pareto.size() && i < kShown; ++i) fmt::print("  {}\n", line(tradeoff.pareto[i]));
  if (tradeoff.quadrants) {
    const Quadrants& q = *tradeoff.quadrants;
    const double all = 100.0 / static_cast<double>(tradeoff.points.size());
    fmt::print("\nFastest:        {}\nMost efficient: {}\n", line(q.fastest), line(q.most_efficient));
    fmt::print("  it needs {:.1f} % less energy than the fastest and is {:.1f} % slower\n", 100 * q.energy_saved,
               100 * q.speed_lost);
    fmt::print(
        "  {} ({:.1f} %) need less energy than the fastest, {} ({:.1f} %) are faster than the most "
        "efficient, {} "
        "are both\n",
        q.beat_fastest_in_energy, all * q.beat_fastest_in_energy, q.beat_most_efficient_in_speed,
        all * q.beat_most_efficient_in_speed, q.beat_both);
    fmt::print(
        "  spread: {:.2f} x in energy at the speed of the most efficient, {:.2f} x in time at the efficiency "
        "of "
        "the fastest,\n          {:.2f} x in energy between configurations within 1 % in time\n",
        tradeoff.spread->energy_at_equal_speed, tradeoff.spread->time_at_equal_efficiency,
        tradeoff.spread->energy_within_one_percent);
  }
  print_influence(recording, tradeoff, influence);
  fmt::print("\nHow hard it is for local search (proportion of centrality):\n");
  for (const auto& [name, c] : centrality) {
    fmt::print(
        "  {:<7} {} local minima of {}; {:.1f} % of searches end within 1 % of the optimum, {:.1f} % within "
        "5 %, "
        "{:.1f} % within 10 %\n",
        name, c.minima, c.configurations, 100 * share_at(c, 1.01), 100 * share_at(c, 1.05), 100 * share_at(c, 1.10));
  }
}

std::string figure_of(const Recording& recording, const Tradeoff& tradeoff) {
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
  return chart.to_svg();
}

void analyse(const AnalyseArguments& arguments) {
  const Neighbourhood kind = neighbourhood_of(arguments.neighbourhood);
  const Recording recording = load_recording(arguments.file, arguments.session);
  print_warnings(arguments.file, recording.warnings);
  const Tradeoff tradeoff = analyse_tradeoff(recording);
  if (tradeoff.points.empty()) {
    throw UserError(fmt::format("{}: none of its {} configurations has a time", arguments.file, recording.size()));
  }
  const auto centrality = centralities(recording, tradeoff, kind);
  if (!arguments.figure.empty()) {
    if (!tradeoff.has_energy) throw UserError("--figure: no energies were recorded to draw");
    write_named_file(arguments.figure, figure_of(recording, tradeoff));
  }
  const InfluenceAnalysis influence = analyse_influence(recording, tradeoff, arguments.peaks);
  std::size_t figures = 0;
  if (!arguments.figures.empty())
    figures = write_figures(arguments.figures, recording, tradeoff, influence, arguments.metrics);
  if (arguments.json) {
    Json document = document_of(recording, tradeoff, centrality, arguments);
    add_to_document(document, recording, tradeoff, influence);
    print_json(document);
  } else {
    print_for_people(recording, tradeoff, influence, centrality);
    if (figures > 0) fmt::print("\nWrote {} figures and influences.csv into {}\n", figures, arguments.figures);
  }
}

}  // namespace

void add_analyse_command(Verb app) {
  auto arguments = std::make_shared<AnalyseArguments>();
  Verb verb = app.add_verb(
      "analyse",
      "Pareto front, hull, what goes with speed and efficiency, rooflines, and tuning difficulty of what was recorded");
  verb.add_option("FILE", arguments->file, "A results database, a Kernel Tuner cache, a T4 file or CSV").required();
  verb.add_option("--session", arguments->session, "Session of a database (the latest)");
  verb.add_option("--neighbourhood", arguments->neighbourhood,
                  "What a local search steps to: hamming, adjacent, strictly_adjacent (hamming)");
  verb.add_option("--figure", arguments->figure, "Write efficiency over speed, coloured by clock, as SVG");
  verb.add_option(
      "--figures", arguments->figures,
      "Write into this folder: correlations (Figures 6 to 8 of Anzt et al.), metrics above and below their means (9), "
      "means by occupancy, rooflines, all as SVG, and influences.csv");
  verb.add_option("--metric", arguments->metrics,
                  "With --figures: metrics of Figure 9, repeatable (occupancy, ipc and three throughputs)")
      .take_all();
  verb.add_option("--peaks", arguments->peaks,
                  "Recordings of kernels that reach the board's peaks, for the rooflines, repeatable")
      .take_all();
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune analyse ergotune.db --figure tradeoff.svg\n"
      "  ergotune analyse ergotune.db --figures figures --metric occupancy --metric power\n"
      "  ergotune analyse recorded.json --json");
  verb.callback([arguments] { analyse(*arguments); });
}

}  // namespace ergotune::cli
