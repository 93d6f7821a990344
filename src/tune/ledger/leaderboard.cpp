#include "tune/ledger/leaderboard.hpp"

#include <cmath>

#include "search/ranking.hpp"

namespace ergotune {

const Measurement& Leaderboard::judged(ConfigurationIndex index) const {
  const auto corrected_measurement = levelled_.find(index);
  return corrected_measurement == levelled_.end() ? measurement(index) : corrected_measurement->second;
}

void Leaderboard::level(ConfigurationIndex index) {
  levelled_.erase(index);
  if (auto level = ledger_.corrected_measurement(*ledger_.find(index))) levelled_[index] = std::move(*level);
}

bool Leaderboard::is_guess(ConfigurationIndex index) const {
  const auto corrected_measurement = levelled_.find(index);
  return corrected_measurement != levelled_.end() && lacks_energy(measurement(index)) &&
         corrected_measurement->second.value("energy");
}

bool Leaderboard::compare(ConfigurationIndex index) {
  const Measurement& measured = judged(index);
  const auto better = [&](const std::optional<ConfigurationIndex>& than) {
    return !than || objective_.better(measured, judged(*than));
  };
  const bool leads = better(leader_);
  if (!is_guess(index) && (best_ == leader_ ? leads : better(best_))) best_ = index;
  if (leads) leader_ = index;
  return leads;
}

bool Leaderboard::see(ConfigurationIndex index) {
  level(index);
  const Measurement& measured = judged(index);
  const bool fresh = !outcomes_.contains(index);
  const Outcome& outcome = outcomes_[index] = objective_.outcome(measured);
  const bool foreign = fresh && ledger_.is_of_other_objective(index);
  if (fresh) order_.push_back(index);
  foreign_ += foreign;
  if (!outcome.ok) {
    failed_ += fresh;
  } else {
    usable_ += fresh;
    if (compare(index)) {
      const double value = objective_.value(measured).value_or(0);
      if (usable_ == 1 || std::abs(value - best_then_) > 0.01 * std::abs(best_then_)) {
        last_improvement_ = usable_;
        best_then_ = value;
      }
    }
    if (foreign) last_improvement_ = usable_;  // that search did not look for this
  }
  const std::size_t factors = ledger_.revision();
  const bool compares_otherwise = factors != factors_revision_ && !levelled_.empty();
  const bool revised = objective_.revision() != revision_ || compares_otherwise;
  factors_revision_ = factors;
  revision_ = objective_.revision();
  return revised;
}

void Leaderboard::recompute_outcomes() {
  best_.reset();
  leader_.reset();
  for (const ConfigurationIndex index : order_) level(index);
  for (const ConfigurationIndex index : order_) {
    const Outcome& outcome = outcomes_[index] = objective_.outcome(judged(index));
    if (outcome.ok) compare(index);
  }
  revision_ = objective_.revision();
}

std::optional<double> Leaderboard::best_value() const {
  return best_ ? objective_.value(measurement(*best_)) : std::nullopt;
}

std::vector<ConfigurationIndex> Leaderboard::ranking() { return ranked(&Leaderboard::measurement); }
std::vector<ConfigurationIndex> Leaderboard::candidates() { return ranked(&Leaderboard::judged); }

std::vector<ConfigurationIndex> Leaderboard::ranked(const Measurement& (Leaderboard::*of)(ConfigurationIndex) const) {
  std::vector<ConfigurationIndex> indices;
  std::vector<const Measurement*> measurements;
  for (const ConfigurationIndex index : order_) {
    if (is_guess(index)) continue;
    indices.push_back(index);
    measurements.push_back(&(this->*of)(index));
  }
  const ObjectiveSpec wanted = objective_.spec();
  std::vector<ConfigurationIndex> ranked;
  for (const Ranked& place : rank(objective_, measurements,
                                  [&](std::size_t i) { return ledger_.find(indices[i])->confirmed_for == wanted; })) {
    ranked.push_back(indices[place.position]);
  }
  return ranked;
}

}  // namespace ergotune
