// ergotune tune: finds the best configuration of a problem.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/command.hpp"
#include "cli/interruption.hpp"
#include "cli/live_options.hpp"
#include "cli/plan_output.hpp"
#include "cli/progress.hpp"
#include "cli/tune_report.hpp"
#include "ergotune/base/error.hpp"

namespace ergotune::cli {
namespace {

/// s; a search that goes on for longer without a bound is told of one.
constexpr double kLong = 1800;

struct TuneArguments : LiveArguments {
  std::optional<std::string> strategy, budget, store, plan, figure, retry;
  std::vector<std::string> strategy_options;
  std::optional<std::uint64_t> seed;
  bool no_resume = false, no_store = false, no_confirm = false, early_stop = false, quiet = false,
       json = false;
  std::size_t top = 5;
};

/// "population=20" as a name and a value: a number where it reads as one.
std::pair<std::string, Value> strategy_option(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError("--strategy-option takes NAME=VALUE, not \"" + text + "\"");
  }
  const std::string value = text.substr(equals + 1);
  std::string name = text.substr(0, equals);
  std::int64_t integer = 0;
  const char* end = value.data() + value.size();
  if (const auto [rest, error] = std::from_chars(value.data(), end, integer);
      error == std::errc() && rest == end) {
    return {std::move(name), Value(integer)};
  }
  double real = 0;
  if (const auto [rest, error] = std::from_chars(value.data(), end, real);
      error == std::errc() && rest == end) {
    return {std::move(name), Value(real)};
  }
  if (value == "true" || value == "True") return {std::move(name), Value(true)};
  if (value == "false" || value == "False") return {std::move(name), Value(false)};
  return {std::move(name), Value(value)};
}

/// "timeout,runtime_error", or "all": everything but ok.
std::set<Status> statuses_to_retry(const std::string& text) {
  const std::vector<Status> failures{Status::compile_error, Status::launch_error, Status::runtime_error,
                                     Status::timeout,       Status::wrong_result, Status::not_converged,
                                     Status::unsupported};
  std::vector<std::string> names{"all"};
  for (const Status status : failures) names.push_back(to_string(status));
  std::set<Status> chosen;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "all") {
      chosen.insert(failures.begin(), failures.end());
    } else if (const auto status = status_from(word); status && *status != Status::ok) {
      chosen.insert(*status);
    } else {
      throw UserError(
          fmt::format("--retry: no failure has the status \"{}\"{}", word, suggestion(word, names)));
    }
  }
  if (chosen.empty()) throw UserError("--retry takes statuses with commas, or all");
  return chosen;
}

SessionOptions session_options(const TuneArguments& arguments, const TuneDefaults& defaults) {
  SessionOptions options;
  if (defaults.strategy) options.strategy = *defaults.strategy;
  if (arguments.strategy) options.strategy = *arguments.strategy;
  if (!arguments.strategy) options.strategy_options = defaults.strategy_options;
  for (const std::string& text : arguments.strategy_options) {
    auto [name, value] = strategy_option(text);
    options.strategy_options[name] = std::move(value);
  }
  if (arguments.budget) {
    options.budget = Budget::parse(*arguments.budget);
  } else if (defaults.budget) {
    options.budget = Budget::parse(*defaults.budget);
  }
  // Refused before anything is compiled, not after.
  std::vector<std::string> names;
  for (const StrategyDescription& description : strategies()) names.push_back(description.name);
  if (std::find(names.begin(), names.end(), options.strategy) == names.end()) {
    throw UserError(
        fmt::format("no strategy \"{}\"{}", options.strategy, suggestion(options.strategy, names)));
  }
  options.seed = arguments.seed.value_or(defaults.seed.value_or(1));
  options.confirm = !arguments.no_confirm;
  options.early_stop = arguments.early_stop;
  if (arguments.retry) options.retry = statuses_to_retry(*arguments.retry);
  return options;
}

void tune(const TuneArguments& arguments) {
  // Compiled code passes through with every configuration: giving its memory back each time costs page
  // faults.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  Problem problem = load_with(arguments);
  SetupOptions setup = setup_with(arguments, problem);
  if (arguments.store) setup.store = *arguments.store;
  if (setup.store.empty()) setup.store = "ergotune.db";
  if (arguments.no_store) setup.store.clear();
  setup.resume = !arguments.no_resume;
  SessionOptions options = session_options(arguments, problem.defaults);
  if (options.budget.joules > 0) setup.live.energy = true;  // without a sensor it would never be spent: that is refused
  setup.simulation_seed = options.seed;
  const std::string plan = arguments.plan.value_or(problem.defaults.plan.value_or(""));
  if (!plan.empty() && arguments.retry)
    throw UserError("--retry comes before a search; tune without --plan to try stored failures again");
  if (plan.empty() && arguments.figure)
    throw UserError("--figure draws a comparison of plans: name some with --plan, as in --plan race_to_idle,model_steered");
  if (!plan.empty()) find_plans(plan, problem);  // an unknown name is told before any device is asked
  if (!plan.empty()) {
    if (const std::string added = prepare_for_plans(problem, setup); !added.empty())
      fmt::print(stderr, "note: {}\n", added);
  }

  options.interrupted = interruption();
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  const std::string unit = prepared.objective->unit();
  if (!arguments.quiet) {
    fmt::print(stderr, "Tuning {} on {}: {} configurations\n", prepared.problem.name,
               prepared.evaluator->description(), prepared.space->size());
    for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  }
  ProgressPrinter progress(arguments.quiet, prepared.objective->name(), unit);
  if (!plan.empty()) {
    tune_by_plans(prepared, plan, options, progress, arguments.json, arguments.figure.value_or(""));
    return;
  }
  const bool bounded = options.budget.evaluations > 0 || options.budget.seconds > 0 || options.budget.joules > 0;
  bool told = bounded || arguments.quiet || options.early_stop;
  options.progress = [&](const SessionProgress& p) {
    if (!told && p.evaluated >= 2 && p.seconds_left.value_or(0) > kLong) {
      progress.finish();
      fmt::print(stderr,
                 "note: without a budget all {} configurations are measured, about {} more; Ctrl-C ends it with the best so "
                 "far and keeps every result, and the next time --budget 10min bounds it\n",
                 p.total, human_duration(*p.seconds_left));
      told = true;
    }
    progress(p);
  };
  const SessionResult result = run_session(prepared, options);
  progress.finish();
  if (arguments.json) {
    print_json(result_document(prepared, result));
  } else {
    print_answer(prepared, result, arguments.file, arguments.top);
  }
}

}  // namespace

void add_tune_command(Verb app) {
  auto arguments = std::make_shared<TuneArguments>();
  Verb verb = app.add_verb("tune", "Find the best configuration of a problem");
  add_live_options(verb, *arguments);
  verb.add_option("-s,--strategy", arguments->strategy,
                  "How to search: auto, brute_force, random ... (auto)");
  verb.add_option("--strategy-option", arguments->strategy_options,
                  "NAME=VALUE, a strategy's hyperparameter (repeatable)");
  verb.add_option("-b,--budget", arguments->budget,
                  "When to stop: evaluations (25), time (10min), energy (500J), several with commas; known "
                  "results count");
  verb.add_option("--seed", arguments->seed, "Seed of everything random (1)");
  verb.add_option("--store", arguments->store, "Results database, made where there is none (ergotune.db)");
  verb.add_flag("--no-store", arguments->no_store, "Keep no results");
  verb.add_flag("--no-resume", arguments->no_resume,
                "Begin afresh even where results of this problem are stored");
  verb.add_option("--retry", arguments->retry,
                  "Measure stored failures of these statuses again: timeout,runtime_error ... or all");
  verb.add_flag("--no-confirm", arguments->no_confirm,
                "Do not measure the best candidates again before reporting");
  verb.add_flag("--early-stop", arguments->early_stop, "Stop when further improvement is unlikely");
  verb.add_option("--plan", arguments->plan,
                  "Tune by stages, and compare: race_to_idle, model_steered ... or several with commas");
  verb.add_option("--figure", arguments->figure, "With --plan: write the comparison as an SVG figure");
  verb.add_option("--top", arguments->top, "How many of the best to print (5)");
  verb.add_flag("-q,--quiet", arguments->quiet, "No progress and no notes");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune tune gemm.toml --budget 10min\n"
      "  ergotune tune gemm.toml --device cuda:0 --objective energy --budget 200\n"
      "  ergotune tune gemm.toml --device sim:a100 --plan race_to_idle,model_steered\n"
      "  ergotune tune gemm.toml --retry timeout --time-limit 120\n"
      "The same command again resumes: what is stored is not measured twice. Ctrl-C ends it with the best so "
      "far.");
  verb.callback([arguments] { tune(*arguments); });
}

}  // namespace ergotune::cli
