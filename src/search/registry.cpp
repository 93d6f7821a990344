#include <fmt/format.h>

#include <algorithm>

#include "search/strategy_base.hpp"

namespace ergotune {

namespace search {

// Each is defined in the file of its strategies.
void add_sampling(StrategyList& list);
void add_local(StrategyList& list);
void add_annealing(StrategyList& list);
void add_swarms(StrategyList& list);
void add_evolution(StrategyList& list);
void add_bayesian(StrategyList& list);
void add_bandit(StrategyList& list);
void add_nsga2(StrategyList& list);
void add_bayesian_pareto(StrategyList& list);
void add_auto(StrategyList& list);
void add_coordinate(StrategyList& list);

}  // namespace search

namespace {

std::vector<StrategyDescription>& registry() {
  static std::vector<StrategyDescription> list = [] {
    std::vector<StrategyDescription> built;
    search::add_sampling(built);
    search::add_local(built);
    search::add_annealing(built);
    search::add_swarms(built);
    search::add_evolution(built);
    search::add_bayesian(built);
    search::add_bandit(built);
    search::add_nsga2(built);
    search::add_bayesian_pareto(built);
    search::add_auto(built);
    search::add_coordinate(built);
    return built;
  }();
  return list;
}

const StrategyDescription& find(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& description : registry()) {
    if (description.name == name) return description;
    names.push_back(description.name);
  }
  throw UserError(fmt::format("no strategy \"{}\"{}", name, suggestion(name, names)));
}

// Checks that an option's value has the type of its default; an integer is accepted for a real.
Value checked(const StrategyDescription& description, const StrategyOption& option, const Value& given) {
  const Value& standard = option.default_value;
  const bool fits = standard.is_string() ? given.is_string()
                    : standard.is_real() ? given.is_number()
                    : standard.is_bool() ? given.is_number()
                                         : given.is_integer() || given.is_bool();
  if (!fits)
    throw UserError(fmt::format("strategy {}: option {} takes {}, not {}", description.name, option.name,
                                standard.is_string() ? "a text"
                                : standard.is_real() ? "a number"
                                                     : "a whole number",
                                given.to_literal()));
  return given;
}

}  // namespace

const std::vector<StrategyDescription>& strategies() { return registry(); }

void register_strategy(StrategyDescription description) {
  for (auto& known : registry()) {
    if (known.name != description.name) continue;
    known = std::move(description);
    return;
  }
  registry().push_back(std::move(description));
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context) {
  const StrategyDescription& description = find(name);
  if (context.space == nullptr) throw Error("make_strategy: no search space");
  StrategyContext complete = context;
  std::vector<std::string> names;
  for (const auto& option : description.options) {
    names.push_back(option.name);
    const auto [it, is_default] = complete.options.try_emplace(option.name, option.default_value);
    if (!is_default) it->second = checked(description, option, it->second);
  }
  for (const auto& [option, value] : context.options)
    if (std::find(names.begin(), names.end(), option) == names.end())
      throw UserError(fmt::format("strategy {}: no option \"{}\"{}", name, option,
                                  names.empty() ? "; it has none" : suggestion(option, names)));
  auto strategy = description.make(complete);
  for (const auto& [index, outcome] : complete.known)
    if (index < context.space->size()) strategy->tell(index, outcome);
  return strategy;
}

}  // namespace ergotune
