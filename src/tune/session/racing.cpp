#include "tune/session/racing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ergotune/problem.hpp"
#include "measure/metrics.hpp"

namespace ergotune {

RaceBound race_bound(const Objective& objective, const Problem* problem, const Constants& constants,
                     const SearchSpace& space, ConfigurationIndex index, const RaceLeader& leader) {
  RaceBound bound;
  const std::vector<std::string> needed = objective.quantities();
  const bool one = needed.size() == 1 && (needed.front() == "time" || needed.front() == "energy");
  if (!one || objective.kind() != Objective::Kind::single) return bound;
  bound.quantity = needed.front();
  const auto best = leader.measurement->value(bound.quantity);
  if (!best || !(*best > 0)) return bound;
  if (objective.name() == bound.quantity) {
    if (objective.direction() == Direction::minimise)
      bound.above = *best + leader.measurement->half_width(bound.quantity);
    return bound;
  }
  if (problem == nullptr) return bound;

  const Configuration configuration = space.configuration(index);
  const auto at = [&](double quantity) {
    Measurement measurement;
    measurement.quantities[bound.quantity].value = quantity;
    evaluate_metrics(measurement, problem->metrics, space.parameters(), configuration, constants);
    const auto value = objective.value(measurement);
    if (!value) return std::numeric_limits<double>::quiet_NaN();
    return objective.direction() == Direction::maximise ? -*value : *value;
  };
  // worse with more of it, as far as a few looks tell
  constexpr std::array kLooks{1 / 64.0, 1 / 8.0, 0.5, 1.0, 2.0, 8.0, 64.0};
  double before = -std::numeric_limits<double>::infinity();
  for (const double factor : kLooks) {
    const double here = at(factor * *best);
    if (!(here > before)) return bound;
    before = here;
  }
  const double limit = leader.value + leader.half_width;
  if (!(at(kLooks.back() * *best) > limit)) return bound;
  double low = std::log(kLooks.front() * *best), high = std::log(kLooks.back() * *best);
  for (int i = 0; i < 30; ++i) {
    const double middle = 0.5 * (low + high);
    (at(std::exp(middle)) > limit ? high : low) = middle;
  }
  bound.above = std::exp(high);
  return bound;
}

}  // namespace ergotune
