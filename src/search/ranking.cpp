#include "ergotune/search/ranking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ergotune/base/error.hpp"

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

void refuse_what_was_not_measured(const Objective& objective, std::span<const Measurement* const> measurements) {
  std::set<std::string> there;
  for (const Measurement* measurement : measurements) {
    if (!usable(measurement->status)) continue;
    for (const auto& [name, quantity] : measurement->quantities) there.insert(name);
    for (const auto& [name, value] : measurement->metrics) there.insert(name);
  }
  if (there.empty()) return;
  for (const std::string& name : objective.quantities())
    if (!there.contains(name))
      throw UserError(fmt::format("these results cannot be ranked by \"{}\": none of them has \"{}\"; they have {}",
                                  objective.name(), name, fmt::join(there, ", ")));
}

}  // namespace ergotune
