#include "tune/ledger/screening_source.hpp"

#include <algorithm>
#include <utility>

namespace ergotune {

std::vector<ConfigurationIndex> ScreeningSource::promising(std::size_t room) const {
  std::vector<std::pair<double, ConfigurationIndex>> list;
  for (const ConfigurationIndex index : standing_.order())
    if (standing_.is_guess(index) && standing_.outcome(index).ok && !asked_.contains(index))
      list.emplace_back(standing_.outcome(index).values.front(), index);
  std::sort(list.begin(), list.end());
  std::vector<ConfigurationIndex> best;
  for (int too_slow = 0; const auto& [objective, index] : list) {
    if (best.size() == room || too_slow == kTooSlow) break;
    const double longest = ledger_.energy_by_time().longest(search_.bound_of(index).above);
    too_slow = *standing_.measurement(index).value("time") > longest ? too_slow + 1 : 0;
    if (too_slow == 0) best.push_back(index);
  }
  return best;
}

std::vector<ConfigurationRequest> ScreeningSource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  if (search_.share_spent() >= kTimesAlone) times_alone_ = false;
  if (!times_alone_)
    for (const ConfigurationIndex index : promising(room)) {
      ConfigurationRequest& wanted = list.emplace_back();
      wanted.index = index;
      wanted.give_up_above = search_.bound_of(index).above;
      wanted.objective_quantity = "energy";
      asked_.insert(index);
    }
  if (list.empty() && !ended_) {
    list = search_.next(room);
    for (ConfigurationRequest& wanted : list) {
      const double longest = ledger_.energy_by_time().longest(wanted.give_up_above);
      wanted.energy_up_to = times_alone_ && ledger_.energy_by_time().at(1) ? 0 : longest;
    }
  }
  if (list.empty() && under_way_ == 0 && std::exchange(times_alone_, false)) return next(room);
  under_way_ += list.size();
  return list;
}

void ScreeningSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  --under_way_;
  asked_.contains(wanted.index) ? search_.learn(wanted, measurement, fresh) : search_.take(wanted, measurement, fresh);
}

std::string ScreeningSource::stop() {
  if (std::string why = search_.must_stop(); !why.empty()) return why;
  const std::string why = search_.stop();
  ended_ = !why.empty();
  if (!ended_) return {};
  // By the times nothing better is likely: the energies of the fastest are left.
  times_alone_ = false;
  return under_way_ == 0 && promising(1).empty() ? why : std::string();
}

}  // namespace ergotune
