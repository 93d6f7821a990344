// ergotune analyse: analyses a recording's trade-off between time and energy, and how difficult it is to search.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "ergotune/problem_file.hpp"
#include "report/recording_analysis.hpp"
#include "tune/target/target.hpp"

namespace ergotune::cli {
namespace {

struct AnalyseArguments : AnalysisOptions {
  std::string file, device, figure;
  std::int64_t session = 0;
  bool json = false;
};

void print_influence(const RecordingAnalysis& analysis) {
  const Recording& recording = analysis.recording;
  const Tradeoff& tradeoff = analysis.tradeoff;
  const std::string mark = mark_of(recording.provenance);
  if (analysis.influences.empty()) {
    fmt::print("\nToo few configurations, or nothing that varies: no influences can be estimated.\n");
  } else {
    fmt::print("\n{:<33}{:<24} {:<24} {:<24} n\n", "Correlation" + mark + " with", tradeoff.speed_name,
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
    fmt::print("\nBy occupancy{}:\n", mark);
    for (const Level& level : analysis.levels) {
      fmt::print("  {:>5.1f} %  {:>5} configurations, {:.4g} {}", 100 * level.value, level.count, level.speed,
                 tradeoff.speed_name);
      if (tradeoff.has_energy) fmt::print(", {:.4g} {}", level.efficiency, tradeoff.efficiency_name);
      fmt::print("\n");
    }
  }
  if (!analysis.sweep.empty()) {
    fmt::print("\nBest by a t/t0 + (1-a) e/e0, a the weight of time{}:\n", mark);
    for (const WeightedBest& best : analysis.sweep) {
      const TradeoffPoint& p = tradeoff.points[best.point];
      fmt::print("  a {:.3f} to {:.3f}  {:>10} {:>10}  {}\n", best.from, best.to, human(p.time, "s"),
                 human(p.energy, "J"), describe(recording.parameters, recording.configuration(p.row)));
    }
  }
  if (!analysis.findings.empty()) fmt::print("\n{}", mark.empty() ? "" : fmt::format("Findings{}:\n", mark));
  for (const std::string& finding : analysis.findings) fmt::print("{}\n", finding);
}

double share_at(const Centrality& centrality, double p) {
  for (const CentralityPoint& point : centrality.curve) {
    if (std::abs(point.p - p) < 1e-9) return point.share;
  }
  return std::nan("");
}

void print_for_people(const RecordingAnalysis& analysis) {
  const Recording& recording = analysis.recording;
  const Tradeoff& tradeoff = analysis.tradeoff;
  const std::string mark = mark_of(recording.provenance);
  fmt::print("{} on {}: {} configurations recorded{}, {} usable\n", recording.name, named_device(recording.device),
             recording.size(), mark, tradeoff.points.size());
  const auto line = [&](std::size_t position) {
    const TradeoffPoint& p = tradeoff.points[position];
    return fmt::format("{:>10} {:>10}  {}", human(p.time, "s"),
                       std::isfinite(p.energy) ? human(p.energy, "J") : std::string("-"),
                       describe(recording.parameters, recording.configuration(p.row)));
  };
  constexpr std::size_t kShown = 12;
  fmt::print("\n{}{}, {}:\n", tradeoff.quadrants ? "Pareto front of time and energy" : "Fastest", mark,
             counted(tradeoff.pareto.size(), "configuration"));
  for (std::size_t i = 0; i < tradeoff.pareto.size() && i < kShown; ++i) fmt::print("  {}\n", line(tradeoff.pareto[i]));
  if (tradeoff.quadrants) {
    const Quadrants& q = *tradeoff.quadrants;
    const double all = 100.0 / static_cast<double>(tradeoff.points.size());
    fmt::print("\nFastest:        {}{}\nMost efficient: {}{}\n", line(q.fastest), mark, line(q.most_efficient), mark);
    fmt::print("  it needs {:.1f} % less energy than the fastest and {:.1f} % more time{}\n", 100 * q.energy_saved,
               100 * q.time_added(), mark);
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
  print_influence(analysis);
  if (!analysis.centrality.empty())
    fmt::print("\nHow hard it is for local search (proportion of centrality){}:\n", mark);
  for (const auto& [name, c] : analysis.centrality) {
    fmt::print(
        "  {:<7} local minima: {} of {}; {:.1f} % of searches end within 1 % of the optimum, {:.1f} % within "
        "5 %, "
        "{:.1f} % within 10 %\n",
        name, c.minima, c.configurations, 100 * share_at(c, 1.01), 100 * share_at(c, 1.05), 100 * share_at(c, 1.10));
  }
}

void analyse(const AnalyseArguments& arguments) {
  Recording recording = arguments.device.empty() ? load_recording(arguments.file, arguments.session)
                                                 : record_simulated(load_problem(arguments.file), arguments.device);
  const RecordingAnalysis analysis = analyse_recording(std::move(recording), arguments);
  for (const std::string& warning : analysis.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (!arguments.figure.empty()) write_figure(arguments.figure, analysis_charts(analysis));
  if (arguments.json) {
    print_json(analysis_document(analysis));
  } else {
    print_for_people(analysis);
  }
}

}  // namespace

void add_analyse_command(Verb app) {
  auto arguments = std::make_shared<AnalyseArguments>();
  Verb verb = app.add_verb("analyse",
                           "Pareto front and hull, correlations with speed and efficiency, rooflines, and tuning "
                           "difficulty of stored results");
  verb.add_option("FILE", arguments->file,
                  "A results database, a Kernel Tuner cache, a T4 file or CSV; with --device a problem file")
      .required();
  verb.add_option("--device", arguments->device,
                  "Analyse every configuration of a problem on this simulated device (sim:a100)");
  verb.add_option("--session", arguments->session, "Session of a database (the latest)");
  verb.add_option("--neighbourhood", arguments->neighbourhood,
                  "What a local search steps to: hamming, adjacent, strictly_adjacent (hamming)");
  verb.add_flag("!--no-centrality", arguments->centrality, "Leave out how hard the space is to search");
  add_figure_option(verb, arguments->figure,
                    "efficiency over speed, coloured by clock; means by occupancy and rooflines where recorded");
  verb.add_option("--peaks", arguments->peaks,
                  "Recordings of kernels that reach the device's peaks, for the rooflines, repeatable")
      .take_all();
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune analyse ergotune.db --figure tradeoff.svg\n"
      "  ergotune analyse recorded.json --json\n"
      "  ergotune analyse gemm.toml --device sim:a100\n"
      "In Python: ergotune.analyse(\"results.db\")");
  verb.callback([arguments] { analyse(*arguments); });
}

}  // namespace ergotune::cli
