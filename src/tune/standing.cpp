#include "tune/standing.hpp"

#include <cmath>

#include "ergotune/search/ranking.hpp"

namespace ergotune {

bool Standing::see(ConfigurationIndex index) {
  const Measurement& measured = measurement(index);
  const bool fresh = !outcomes_.contains(index);
  const Outcome& outcome = outcomes_[index] = objective_.outcome(measured);
  if (fresh) order_.push_back(index);
  if (!outcome.ok) {
    failed_ += fresh;
  } else {
    usable_ += fresh;
    if (!best_ || objective_.better(measured, measurement(*best_))) {
      best_ = index;
      const double value = objective_.value(measured).value_or(0);
      if (usable_ == 1 || std::abs(value - best_then_) > 0.01 * std::abs(best_then_)) {
        last_improvement_ = usable_;
        best_then_ = value;
      }
    }
  }
  const bool revised = objective_.revision() != revision_;
  revision_ = objective_.revision();
  return revised;
}

void Standing::judge_again() {
  best_.reset();
  for (const ConfigurationIndex index : order_) {
    const Outcome& outcome = outcomes_[index] = objective_.outcome(measurement(index));
    if (outcome.ok && (!best_ || objective_.better(measurement(index), measurement(*best_)))) best_ = index;
  }
  revision_ = objective_.revision();
}

std::optional<double> Standing::best_value() const {
  return best_ ? objective_.value(measurement(*best_)) : std::nullopt;
}

std::vector<ConfigurationIndex> Standing::ranking() {
  std::vector<const Measurement*> measurements;
  for (const ConfigurationIndex index : order_) measurements.push_back(&measurement(index));
  const ObjectiveSpec wanted = objective_.spec();
  std::vector<ConfigurationIndex> ranked;
  for (const Ranked& place : rank(objective_, measurements, [&](std::size_t i) {
         return ledger_.find(order_[i])->confirmed_for == wanted;
       })) {
    ranked.push_back(order_[place.position]);
  }
  return ranked;
}

}  // namespace ergotune
