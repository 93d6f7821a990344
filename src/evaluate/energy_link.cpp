#include "evaluate/energy_link.hpp"

#include "ergotune/base/error.hpp"

namespace ergotune {

void add_energy_observers(Runner&, const DeviceInfo& device, const std::vector<std::string>&, double,
                          const MeasureOptions&, std::vector<std::string>&) {
  throw UserError("energy cannot be measured on " + device.name + " yet");
}

}  // namespace ergotune
