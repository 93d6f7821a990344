#include "evaluate/energy_link.hpp"

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
  runner.add_observer(
      std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor), options));
}

}  // namespace ergotune
