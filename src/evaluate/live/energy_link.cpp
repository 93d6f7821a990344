#include "evaluate/live/energy_link.hpp"

#include "measure/observers/observer_registry.hpp"

namespace ergotune {

void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes) {
  if (runner.observes("energy")) return;
  ObserverSpec energy{"energy", {{"seconds", {energy_seconds}}}, {}};
  for (const std::string& sensor : sensors) energy.options["sensors"].push_back(sensor);
  runner.add_observer(make_observer(energy, {device, measure, &notes}));
}

}  // namespace ergotune
