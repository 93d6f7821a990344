// The order in which configurations with different settings are measured.
#include <algorithm>
#include <array>

#include "power/controls/control.hpp"

namespace ergotune {

std::vector<std::size_t> order_by_setting(const std::vector<ControlSetting>& settings, const ControlSetting& current) {
  // Greedy: continue with the setting that changes least from the present one, slowest quantity first. Equal settings
  // cost nothing and stay together, and all settings with one memory clock are done before the next.
  constexpr std::array levels = {ControlQuantity::memory_clock_mhz, ControlQuantity::power_limit_w,
                                 ControlQuantity::core_clock_mhz};
  std::map<ControlSetting, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < settings.size(); ++i) groups[settings[i]].push_back(i);
  const auto cost = [&](const ControlSetting& from, const ControlSetting& to) {
    std::array<int, levels.size()> changed{};
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const auto a = from.find(levels[i]), b = to.find(levels[i]);
      changed[i] = b != to.end() && (a == from.end() || a->second != b->second);
    }
    return changed;
  };
  std::vector<std::size_t> order;
  ControlSetting here = current;
  while (!groups.empty()) {
    auto next = std::min_element(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
      return std::pair{cost(here, a.first), a.second.front()} < std::pair{cost(here, b.first), b.second.front()};
    });
    order.insert(order.end(), next->second.begin(), next->second.end());
    here = next->first;
    groups.erase(next);
  }
  return order;
}

}  // namespace ergotune
