#include "ergotune/search/ranking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ergotune/base/error.hpp"

namespace ergotune {
namespace {

/// Whether a power limit held the clock below the one asked for ("asked 1410 MHz, ran 1275 MHz, power cap").
bool was_held_down(const Measurement& measurement) {
  return std::any_of(measurement.warnings.begin(), measurement.warnings.end(), [](const std::string& warning) {
    return warning.starts_with("asked ") && warning.ends_with("power cap");
  });
}

/// Of those whose intervals reach the leader's, the first whose clock ran as asked takes its place: nobody wins by having run
/// at another clock than its own.
void prefer_what_ran_as_asked(Objective& objective, std::span<const Measurement* const> measurements,
                              const std::function<bool(std::size_t)>& confirmed, std::vector<std::size_t>& order) {
  if (order.empty() || objective.kind() != Objective::Kind::single || !was_held_down(*measurements[order.front()])) return;
  const Outcome leader = objective.outcome(*measurements[order.front()]);
  const bool leader_confirmed = confirmed && confirmed(order.front());
  for (auto place = order.begin() + 1; place != order.end(); ++place) {
    const Outcome other = objective.outcome(*measurements[*place]);
    if (leader_confirmed && !confirmed(*place)) continue;
    if (leader.standard_errors.empty() || other.standard_errors.empty()) return;
    const double apart = 2 * std::hypot(leader.standard_errors.front(), other.standard_errors.front());
    if (other.values.front() - leader.values.front() > apart) continue;
    if (was_held_down(*measurements[*place])) continue;
    std::rotate(order.begin(), place, place + 1);
    return;
  }
}

}  // namespace

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
  prefer_what_ran_as_asked(objective, measurements, confirmed, order);
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
