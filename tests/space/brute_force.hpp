// The slow and obvious way, written without any of the builder's code: every combination, tested by the evaluator.
#pragma once

#include <algorithm>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::test {

/// Every configuration that meets all restrictions, in lexicographic order of the lists of values. Ranges and
/// generators are followed as they stand. Throws what the evaluator throws.
inline std::vector<Configuration> brute_force(const std::vector<Parameter>& parameters,
                                              const std::vector<Restriction>& restrictions,
                                              const Constants& constants = {}) {
  std::vector<Configuration> found;
  Configuration current;
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (std::size_t p = 0; p < current.size(); ++p)
      if (parameters[p].name == name) return &current[p];
    const auto constant = constants.find(name);
    return constant == constants.end() ? nullptr : &constant->second;
  };
  const std::function<void(std::size_t)> choose = [&](std::size_t p) {
    if (p == parameters.size()) {
      for (const auto& restriction : restrictions)
        if (!(restriction.function ? restriction.function(scope) : restriction.expression.evaluate_bool(scope))) return;
      found.push_back(current);
      return;
    }
    std::vector<Value> values = parameters[p].values;
    if (parameters[p].generator) {
      values = parameters[p].generator(scope);
    } else if (parameters[p].range) {
      const auto start = parameters[p].range->start.evaluate(scope).as_integer(),
                 stop = parameters[p].range->stop.evaluate(scope).as_integer(),
                 step = parameters[p].range->step.evaluate(scope).as_integer();
      for (auto v = start; step > 0 ? v < stop : v > stop; v += step) values.emplace_back(v);
    }
    if (parameters[p].generator || parameters[p].range) std::sort(values.begin(), values.end());
    for (const auto& value : values) {
      current.push_back(value);
      choose(p + 1);
      current.pop_back();
    }
  };
  choose(0);
  return found;
}

inline std::vector<Configuration> all_of(const SearchSpace& space) {
  std::vector<Configuration> all;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) all.push_back(space.configuration(i));
  return all;
}

}  // namespace ergotune::test
