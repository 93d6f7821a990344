// The built-in strategies; each function adds those of one file.
#pragma once

#include <vector>

#include "ergotune/strategy.hpp"

namespace ergotune::search {

using StrategyList = std::vector<StrategyDescription>;

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

/// A description whose `make` constructs a T from the context.
template <class T>
StrategyDescription describe_strategy(std::string name, std::string summary, std::vector<StrategyOption> options = {}) {
  StrategyDescription description;
  description.name = std::move(name);
  description.summary = std::move(summary);
  description.options = std::move(options);
  description.make = [](const StrategyContext& context) { return std::make_unique<T>(context); };
  return description;
}

}  // namespace ergotune::search
