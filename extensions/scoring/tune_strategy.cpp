#include "scoring/tune_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ergotune {
namespace {

std::vector<StrategyOption> options_of(const std::string& strategy) {
  for (const auto& description : strategies())
    if (description.name == strategy) return description.options;
  return {};
}

std::vector<Parameter> parameters_of(const std::vector<StrategyOption>& options,
                                     const std::map<std::string, Value>& fixed) {
  std::vector<Parameter> parameters;
  for (const StrategyOption& option : options) {
    if (fixed.count(option.name) > 0) continue;
    Parameter parameter;
    parameter.name = option.name;
    parameter.values = option.candidates;
    if (std::ranges::find(parameter.values, option.default_value) == parameter.values.end())
      parameter.values.push_back(option.default_value);
    std::sort(parameter.values.begin(), parameter.values.end());
    parameter.default_value = option.default_value;
    if (parameter.values.size() > 1) parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace

Value strategy_option_value(const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  std::int64_t whole = 0;
  if (const auto r = std::from_chars(begin, end, whole); r.ec == std::errc{} && r.ptr == end) return whole;
  double real = 0;
  if (const auto r = std::from_chars(begin, end, real); r.ec == std::errc{} && r.ptr == end) return real;
  return text;
}

StrategyTuning tune_strategy(const std::string& strategy, const std::vector<ScoredSpace>& spaces,
                             const ScoreOptions& options, std::uint64_t trials) {
  StrategyContext probe;
  if (spaces.empty()) throw UserError("no recorded spaces to tune a strategy on");
  probe.space = &spaces.front().space();
  probe.options = options.strategy_options;
  make_strategy(strategy, probe);  // throws for a wrong name or option

  const std::vector<Parameter> parameters = parameters_of(options_of(strategy), options.strategy_options);
  if (parameters.empty()) throw UserError(fmt::format("strategy {} has no hyperparameters to tune", strategy));
  const SearchSpace space = SearchSpace::build(parameters, {});

  StrategyTuning tuning;
  tuning.strategy = strategy;
  const auto score = [&](ConfigurationIndex index) {
    StrategyTrial trial;
    ScoreOptions own = options;
    const Configuration configuration = space.configuration(index);
    for (std::size_t p = 0; p < parameters.size(); ++p) trial.options[parameters[p].name] = configuration[p];
    for (const auto& [name, value] : trial.options) own.strategy_options[name] = value;
    trial.score = score_strategies({strategy}, spaces, own).front().mean;
    tuning.trials.push_back(trial);
    if (tuning.trials.size() == 1 || trial.score > tuning.best_score) {
      tuning.best_score = trial.score;
      tuning.best = trial.options;
    }
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {-trial.score};
    return outcome;
  };

  Configuration defaults;
  for (const Parameter& parameter : parameters) defaults.push_back(*parameter.default_value);
  const ConfigurationIndex start = *space.index_of(defaults);
  StrategyContext context;
  context.space = &space;
  context.seed = options.seed;
  context.budget = trials;
  context.known.emplace_back(start, score(start));
  tuning.default_score = tuning.best_score;
  const auto search = make_strategy("auto", context);
  while (tuning.trials.size() < trials) {
    const auto requested = search->ask(1);
    if (requested.empty()) break;
    search->tell(requested.front(), score(requested.front()));
  }
  return tuning;
}

}  // namespace ergotune
