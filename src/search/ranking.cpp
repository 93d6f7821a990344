#include "ergotune/search/ranking.hpp"

#include <algorithm>

namespace ergotune {

std::vector<Ranked> rank(Objective& objective, std::span<const Measurement* const> measurements,
                         const std::function<bool(std::size_t)>& confirmed) {
  // What a search saw of a configuration before it was confirmed counts no more, in best(NAME) neither:
  // whoever reads the same results from a store must find the same order.
  objective.forget();
  for (const Measurement* measurement : measurements) objective.outcome(*measurement);
  std::vector<std::size_t> order = objective.order(measurements);
  if (confirmed && objective.kind() != Objective::Kind::pareto) {
    const auto winner = std::find_if(order.begin(), order.end(), confirmed);
    if (winner != order.end()) std::rotate(order.begin(), winner, winner + 1);
  }
  std::vector<Ranked> ranked;
  ranked.reserve(order.size());
  for (const std::size_t position : order) {
    const Measurement& measurement = *measurements[position];
    ranked.push_back({position, objective.outcome(measurement), objective.value(measurement)});
  }
  return ranked;
}

}  // namespace ergotune
