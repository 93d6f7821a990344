#include "evaluate/live/energy_observers.hpp"

#include "ergotune/problem.hpp"
#include "measure/observers/observer_registry.hpp"

namespace ergotune {

void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes) {
  if (runner.observes("energy")) return;
  ObserverSpec energy{"energy", {{"seconds", {energy_seconds}}}, {}};
  if (!sensors.empty()) energy.options["sensors"].assign(sensors.begin(), sensors.end());
  runner.add_observer(make_observer(energy, {device, measure, &notes}));
}

}  // namespace ergotune
