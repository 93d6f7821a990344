#include "tune/ledger/screening_source.hpp"

#include <algorithm>
#include <utility>

#include "tune/ledger/energy_choice.hpp"

namespace ergotune {

std::vector<ConfigurationIndex> ScreeningSource::promising(std::size_t room) const {
  std::vector<std::pair<double, ConfigurationIndex>> list;
  for (const ConfigurationIndex index : standing_.order())
    if (standing_.is_guess(index) && standing_.outcome(index).ok && !asked_.contains(index))
      list.emplace_back(standing_.outcome(index).values.front(), index);
  std::ranges::sort(list, [&](const auto& a, const auto& b) {
    const bool known = incumbents_.contains(a.second), other_known = incumbents_.contains(b.second);
    return known != other_known ? known : a < b;
  });
  std::vector<ConfigurationIndex> best;
  std::vector<TimedConfiguration> others;
  for (int too_slow = 0; const auto& [objective, index] : list) {
    if (best.size() == room || others.size() == kCandidates || too_slow == kTooSlow) break;
    const double longest = ledger_.energy_by_time().longest(search_.bound_of(index).above);
    const double time = *standing_.measurement(index).value("time");
    const bool slow = time > longest, incumbent = incumbents_.contains(index);
    if (!incumbent) too_slow = slow ? too_slow + 1 : 0;
    if (slow) continue;
    if (incumbent)
      best.push_back(index);
    else
      others.push_back({index, time});
  }
  if (best.size() == room || others.empty()) return best;
  for (const ConfigurationIndex index : by_expected_improvement(standing_.ledger().space(), least_energies(), others))
    if (best.size() < room) best.push_back(index);
  return best;
}

std::vector<TimedConfiguration> ScreeningSource::least_energies() const {
  std::vector<TimedConfiguration> list;
  for (const ConfigurationIndex index : standing_.order()) {
    if (standing_.is_guess(index) || !standing_.outcome(index).ok) continue;
    const Measurement& measurement = standing_.measurement(index);
    const double time = measurement.value("time").value_or(0), energy = measurement.value("energy").value_or(0);
    if (time > 0 && energy > 0) list.push_back({index, time, energy});
  }
  std::ranges::sort(list, {}, &TimedConfiguration::energy);
  if (list.size() > kCandidates) list.resize(kCandidates);
  return list;
}

StrategySource::Kept ScreeningSource::keeps() const {
  if (energies_ <= kFewEnergies) return {.fewest = 0, .share = 0};
  if (energies_ == kFewEnergies + 1) return {.fewest = kFewestRepeats, .share = 0};
  return {.fewest = kFewestRepeats};
}

std::string ScreeningSource::no_time() const {
  return search_.budget_spent(keeps(), energy_seconds_ * static_cast<double>(1 + energies_under_way_));
}

std::vector<ConfigurationRequest> ScreeningSource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  const auto ask_energy = [&](ConfigurationIndex index) {
    ConfigurationRequest& wanted = list.emplace_back();
    wanted.index = index;
    wanted.give_up_above = search_.bound_of(index).above;
    wanted.objective_quantity = "energy";
    wanted.first = true;  // the times of all that the compilers are ahead may take longer than what is left
    asked_.insert(index);
    ++energies_under_way_;
  };
  if (search_.share_spent() >= (earlier_ ? kTimesAloneAfterAnother : kTimesAlone)) times_alone_ = false;
  // Beyond the room: the first part requests what a search by time requests.
  if (first_ && standing_.seen(*first_) && standing_.is_guess(*first_)) {
    ask_energy(*first_);
    ++room;
  }
  first_.reset();
  while (!known_.empty() && list.size() < room) {
    const ConfigurationIndex index = known_.front();
    known_.pop_front();
    if (standing_.seen(index)) continue;
    list.push_back({.index = index, .give_up_above = search_.bound_of(index).above, .energy_up_to = 0});
    timed_.insert(index);
  }
  std::vector<ConfigurationIndex> best;
  if (!times_alone_ && list.size() < room) best = promising(kEnergiesAhead);
  for (const ConfigurationIndex index : best)
    if (energies_under_way_ < kEnergiesAhead && list.size() < room && (!standing_.best() || no_time().empty()))
      ask_energy(index);
  if (best.empty() && !ended_ && list.size() < room) {
    for (ConfigurationRequest& wanted : search_.next(room - list.size())) {
      const double longest = ledger_.energy_by_time().longest(wanted.give_up_above);
      wanted.energy_up_to = times_alone_ ? 0 : longest;
      list.push_back(std::move(wanted));
    }
  }
  if (list.empty() && under_way_ == 0 && std::exchange(times_alone_, false)) return next(room);
  under_way_ += list.size();
  return list;
}

void ScreeningSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  --under_way_;
  if (fresh && measurement.value("energy")) {
    ++energies_;
    energy_seconds_ = measurement.verify_seconds + measurement.measure_seconds;
  }
  if (timed_.erase(wanted.index) > 0) return search_.learn(wanted, measurement, fresh);
  if (!asked_.contains(wanted.index)) return search_.take(wanted, measurement, fresh);
  --energies_under_way_;
  search_.learn(wanted, measurement, fresh);
}

std::string ScreeningSource::stop() {
  // Without one measured energy there is no answer, whatever the budget says.
  if (!standing_.best() && (first_ || energies_under_way_ > 0 || !promising(1).empty())) return {};
  if (std::string why = search_.must_stop(keeps()); !why.empty()) return why;
  if (std::string why = no_time(); !times_alone_ && energies_under_way_ == 0 && !why.empty()) return why;
  const std::string why = search_.stop();
  ended_ = !why.empty();
  if (!ended_) return {};
  // By the times nothing better is likely: the energies of the fastest are left.
  times_alone_ = false;
  return under_way_ == 0 && promising(1).empty() ? why : std::string();
}

}  // namespace ergotune
