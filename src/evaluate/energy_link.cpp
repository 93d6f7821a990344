#include "evaluate/energy_link.hpp"

#include <algorithm>

#include "ergotune/measure/energy.hpp"

namespace ergotune {

void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes) {
  EnergySources sources =
      energy_sources(sensors, device.name, device.uuid, device.pci_address, device.is_cpu);
  for (const auto& sensor : sources.sensors) {
    notes.push_back("energy by " + sensor->info().id + " (" + sensor->info().name + ")");
  }
  EnergyOptions options;
  options.precision = measure.precision;
  options.budget = energy_seconds;
  if (measure.reference_seconds > 0) {
    options.budget = measure.reference_seconds;
    options.whole_budget = true;
    options.settle_at_least = std::min(2.0, 0.25 * measure.reference_seconds);
  }
  runner.add_observer(
      std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor), options));
}

}  // namespace ergotune
