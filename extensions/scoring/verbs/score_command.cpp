// ergotune score: scores strategies on recorded spaces.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/output/table.hpp"
#include "ergotune/error.hpp"
#include "scoring/score.hpp"
#include "scoring/tune_strategy.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune::cli {
namespace {

struct ScoreArguments {
  std::vector<std::string> data;
  std::string strategies = "auto,random";
  int repeats = 20;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string objective, figure, tune, runs;
  std::vector<std::string> options;
  std::uint64_t trials = 40;
  bool list = false;
  bool json = false;
};

/// Files as given; for a folder, all recordings in it (without problem files and T4 copies of the same results).
std::vector<std::filesystem::path> files_of(const std::vector<std::string>& data) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : data) {
    const std::filesystem::path path(name);
    if (!std::filesystem::is_directory(path)) {
      if (!std::filesystem::exists(path)) throw UserError(fmt::format("{}: no such file or folder", name));
      files.push_back(path);
      continue;
    }
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string file = entry.path().filename().string();
      const bool is_recording = file.ends_with(".json") || file.ends_with(".json.gz") || file.ends_with(".csv") ||
                                file.ends_with(".csv.gz") || (entry.is_regular_file() && is_store(entry.path()));
      const bool is_other = file.find(".T1.") != std::string::npos || file.find(".T4.") != std::string::npos;
      if (entry.is_regular_file() && is_recording && !is_other) found.push_back(entry.path());
    }
    if (found.empty()) throw UserError(fmt::format("{}: no recordings (*.json, *.csv, stores) in this folder", name));
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// Configurations without which a score is mostly chance.
constexpr std::size_t kFewest = 100;

std::vector<ScoredSpace> load_spaces(const ScoreArguments& arguments) {
  std::vector<ScoredSpace> spaces;
  for (const auto& file : files_of(arguments.data)) {
    Recording recording = load_recording(file);
    if (const std::string selection = recording.selection(); !selection.empty())
      recording.warnings.push_back(selection + ": scores are of these alone, not of the whole space");
    if (recording.size() < kFewest)
      recording.warnings.push_back(fmt::format(
          "{} configurations are too few for scores: single evaluations decide, also for the strategy random",
          recording.size()));
    print_warnings(file, recording.warnings);
    spaces.emplace_back(std::move(recording), arguments.objective);
    const ScoredSpace& space = spaces.back();
    fmt::print(stderr, "{}: {} configurations, {} failed, budget {:.0f} s of replayed time\n", space.name(),
               space.space().size(), space.failed(), space.budget_seconds());
  }
  return spaces;
}

nlohmann::ordered_json to_json(const SpaceScore& score) {
  nlohmann::ordered_json relative;
  for (const auto& [evaluations, value] : score.relative_at) relative[std::to_string(evaluations)] = value;
  return {{"score", score.score},
          {"evaluations_to_5_percent", score.evaluations_to_5_percent},
          {"evaluations_to_1_percent", score.evaluations_to_1_percent},
          {"successes_5_percent", score.successes_5_percent},
          {"successes_1_percent", score.successes_1_percent},
          {"relative_at", relative},
          {"evaluations", score.evaluations},
          {"strategy_seconds_per_evaluation", score.own_seconds}};
}

nlohmann::ordered_json to_json(const std::vector<StrategyScore>& scores, const std::vector<ScoredSpace>& spaces,
                               const ScoreArguments& arguments) {
  nlohmann::ordered_json document, strategies = nlohmann::ordered_json::object();
  for (const StrategyScore& score : scores) {
    nlohmann::ordered_json spaces = nlohmann::ordered_json::object();
    for (const SpaceScore& space : score.spaces) spaces[space.space] = to_json(space);
    strategies[score.strategy] = {{"mean", score.mean},
                                  {"evaluations_to_5_percent", score.evaluations_to_5_percent},
                                  {"evaluations_to_1_percent", score.evaluations_to_1_percent},
                                  {"spaces", spaces}};
  }
  document["provenance"] = "replayed";
  document["repeats"] = arguments.repeats;
  document["seed"] = arguments.seed;
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const ScoredSpace& space : spaces)
    facts[space.name()] = {{"configurations", space.space().size()},
                           {"failed", space.failed()},
                           {"optimum", space.optimum()},
                           {"budget_seconds", space.budget_seconds()},
                           {"draws_to_cutoff", space.draws_to_cutoff()}};
  document["spaces"] = facts;
  document["strategies"] = strategies;
  return document;
}

void print_table(const std::vector<StrategyScore>& scores) {
  if (scores.empty()) return;
  fmt::print("Replayed, nothing measured. 0 is random search, 1 the optimum at once.\n\n");
  fmt::print("{:<28} {:>6} {:>8} {:>8}", "strategy", "mean", "to 5 %", "to 1 %");
  for (const SpaceScore& space : scores.front().spaces) fmt::print(" {:>20}", space.space.substr(0, 20));
  fmt::print("\n");
  for (const StrategyScore& score : scores) {
    fmt::print("{:<28} {:>6.3f} {:>8.0f} {:>8.0f}", score.strategy, score.mean, score.evaluations_to_5_percent,
               score.evaluations_to_1_percent);
    for (const SpaceScore& space : score.spaces)
      fmt::print(" {:>20}", fmt::format("{:.2f} ({:.0f})", space.score, space.evaluations_to_1_percent));
    fmt::print("\n");
  }
  fmt::print(
      "\nto 5 %, to 1 %: expected evaluations to within 5 % and 1 % of the optimum, geometric mean; per space the "
      "score and, in brackets, evaluations to 1 %\n");
}

void report_tuning(const StrategyTuning& tuning, const ScoreArguments& arguments) {
  if (arguments.json) {
    nlohmann::ordered_json best = nlohmann::ordered_json::object(), trials = nlohmann::ordered_json::array();
    for (const auto& [name, value] : tuning.best) best[name] = value.to_string();
    for (const auto& trial : tuning.trials) {
      nlohmann::ordered_json options = nlohmann::ordered_json::object();
      for (const auto& [name, value] : trial.options) options[name] = value.to_string();
      trials.push_back({{"options", options}, {"mean", trial.score}});
    }
    print_json({{"provenance", "replayed"},
                {"strategy", tuning.strategy},
                {"best", best},
                {"mean", tuning.best_score},
                {"default_mean", tuning.default_score},
                {"trials", trials}});
    return;
  }
  fmt::print("{}: mean score {:.3f} with its defaults, {:.3f} with\n", tuning.strategy, tuning.default_score,
             tuning.best_score);
  for (const auto& [name, value] : tuning.best) fmt::print("  {} = {}\n", name, value.to_literal());
  fmt::print("({} settings tried; replayed, nothing measured)\n", tuning.trials.size());
}

/// Scores runs of another tool: {"NAME": {"SPACE": [[[seconds, value or null], ...], ...]}}.
std::vector<StrategyScore> score_foreign(const std::string& file, const std::vector<ScoredSpace>& spaces) {
  std::vector<StrategyScore> scores;
  try {
    std::ifstream stream(file);
    const auto document = nlohmann::ordered_json::parse(stream);
    for (const auto& [name, by_space] : document.items()) {
      std::vector<SpaceScore> list;
      for (const ScoredSpace& space : spaces) {
        std::vector<std::vector<ForeignEvaluation>> runs;
        for (const auto& run : by_space.at(space.name())) {
          runs.emplace_back();
          for (const auto& evaluation : run) {
            const auto& value = evaluation.at(1);
            runs.back().push_back({evaluation.at(0).get<double>(),
                                   value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>()});
          }
        }
        list.push_back(score_runs(space, runs));
      }
      scores.push_back(combine_scores(name, std::move(list)));
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("{}: not runs as --runs takes them: {}", file, error.what()));
  }
  return scores;
}

void list_strategies(bool json) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const StrategyDescription& description : strategies()) {
    nlohmann::ordered_json options = nlohmann::ordered_json::object();
    if (!json) fmt::print("{:<28} {}\n", description.name, description.summary);
    for (const StrategyOption& option : description.options) {
      options[option.name] = {{"meaning", option.meaning}, {"default", option.default_value.to_string()}};
      if (!json)
        fmt::print("    {:<14} {} (default {})\n", option.name, option.meaning, option.default_value.to_string());
    }
    document[description.name] = {
        {"summary", description.summary}, {"multi_objective", description.multi_objective}, {"options", options}};
  }
  if (json) print_json({{"strategies", document}});
}

/// A quarter of a curve's thousand points is enough for drawing.
constexpr std::size_t kThinned = 4;

ChartSeries curve(const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
  ChartSeries series{name, {}, {}, true, false, {}};
  for (std::size_t i = 0; i < x.size(); i += kThinned) {
    series.x.push_back(x[i]);
    series.y.push_back(y[i]);
  }
  return series;
}

Chart over_all_spaces(const std::vector<StrategyScore>& scores) {
  Chart chart;
  chart.title = "Over all spaces (replayed): 0 is random search, 1 the optimum at once";
  chart.x_label = "share of the time to the cut-off";
  chart.y_label = "improvement over random";
  chart.y_limits = {-0.5, 1};
  std::vector<double> share(scores.empty() ? 0 : scores.front().improvement.size());
  for (std::size_t i = 0; i < share.size(); ++i) share[i] = static_cast<double>(i) / static_cast<double>(share.size());
  for (const StrategyScore& score : scores) chart.series.push_back(curve(score.strategy, share, score.improvement));
  return chart;
}

Chart over_time(const std::vector<StrategyScore>& scores, const ScoredSpace& space, std::size_t position) {
  Chart chart;
  chart.title = space.name() + " (replayed)";
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
  return chart;
}

std::vector<Chart> convergence_charts(const std::vector<StrategyScore>& scores,
                                      const std::vector<ScoredSpace>& spaces) {
  std::vector<Chart> charts{over_all_spaces(scores)};
  for (std::size_t p = 0; p < spaces.size(); ++p) charts.push_back(over_time(scores, spaces[p], p));
  return charts;
}

void run_score(const ScoreArguments& arguments) {
  if (arguments.list) return list_strategies(arguments.json);
  if (arguments.data.empty())
    throw UserError("score needs recordings: --data FILE or FOLDER, repeatable (or --list for the strategies)");
  const std::vector<ScoredSpace> spaces = load_spaces(arguments);
  ScoreOptions options;
  options.repeats = arguments.repeats;
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  for (const std::string& text : arguments.options) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      throw UserError(fmt::format("--strategy-option takes NAME=VALUE, not \"{}\"", text));
    options.strategy_options[text.substr(0, equals)] = strategy_option_value(text.substr(equals + 1));
  }
  if (!arguments.tune.empty()) {
    report_tuning(tune_strategy(arguments.tune, spaces, options, arguments.trials), arguments);
    return;
  }
  std::vector<std::string> names = split(arguments.strategies);
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const auto& description : strategies())
      if (!description.multi_objective || description.name == "auto") names.push_back(description.name);
  }
  options.progress = [last = std::size_t{0}](std::size_t done, std::size_t total) mutable {
    const std::size_t tenth = 10 * done / std::max<std::size_t>(1, total);
    if (tenth == last) return;
    last = tenth;
    fmt::print(stderr, "{} of {} runs\n", done, total);
  };
  auto scores = score_strategies(names, spaces, options);
  if (!arguments.runs.empty())
    for (auto& score : score_foreign(arguments.runs, spaces)) scores.push_back(std::move(score));
  write_figure(arguments.figure, convergence_charts(scores, spaces));
  if (arguments.json)
    print_json(to_json(scores, spaces, arguments));
  else
    print_table(scores);
}

}  // namespace

void add_score_command(Verb app) {
  auto arguments = std::make_shared<ScoreArguments>();
  Verb verb = app.add_verb("score", "Score search strategies on recorded spaces (replayed, no hardware)");
  verb.add_option("--data", arguments->data, "Recordings, or folders of them: Kernel Tuner caches, T4, CSV, stores");
  verb.add_option("--strategies", arguments->strategies, "Names, joined by commas, or \"all\"").show_default();
  verb.add_option("--repeats", arguments->repeats, "Runs per strategy and space").show_default().positive();
  verb.add_option("--seed", arguments->seed, "Seed of the first run; the next have the seeds after it").show_default();
  verb.add_option("--threads", arguments->threads, "Runs at a time; 0 for one per core").show_default();
  verb.add_option("--objective", arguments->objective,
                  "What to score on; what was recorded as the objective if absent");
  verb.add_option("--strategy-option", arguments->options, "NAME=VALUE for every strategy scored").take_all();
  add_figure_option(verb, arguments->figure, "convergence curves, over all spaces and of each");
  verb.add_option("--runs", arguments->runs,
                  "Score these runs of another tool beside ours (JSON; bench/search/compare.sh makes them)");
  verb.add_option("--tune-strategy", arguments->tune, "Find better hyperparameters for this strategy instead");
  verb.add_flag("--list", arguments->list, "List the strategies and their hyperparameters instead");
  verb.add_option("--trials", arguments->trials, "Settings tried by --tune-strategy").show_default();
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune score --list\n"
      "  ergotune score --data recordings/ --strategies auto,simulated_annealing --repeats 20 --figure scores.svg\n"
      "  ergotune score --data recordings/ --tune-strategy genetic --trials 40\n"
      "In Python: the command only");
  verb.callback([arguments] { run_score(*arguments); });
}

}  // namespace ergotune::cli
