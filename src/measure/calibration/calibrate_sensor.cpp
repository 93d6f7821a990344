#include <fmt/format.h>

#include "ergotune/error.hpp"
#include "measure/calibration/calibration.hpp"

namespace ergotune {
namespace {

/// Returns the device that loads the sensor's GPU: the named one, else the one with the same UUID or PCI address.
std::unique_ptr<Device> device_for(const std::string& named, const SensorInfo& sensor) {
  if (!named.empty()) return open_device(named);
  for (const auto& info : list_devices()) {
    const bool same_uuid = !sensor.uuid.empty() && info.uuid == sensor.uuid;
    const bool same_pci = !sensor.pci_address.empty() && info.pci_address == sensor.pci_address;
    if (same_uuid || same_pci) return open_device(info.id);
  }
  throw UserError(
      fmt::format("calibrate: no device has the UUID or PCI address of sensor {}; name the device whose load "
                  "it sees with --device, or device= in Python "
                  "(\"ergotune devices\" lists them)",
                  sensor.id));
}

}  // namespace

Calibration calibrate_sensor(const std::string& sensor_id, const std::string& device_id, const std::string& meter_id,
                             const std::function<void(const std::string&)>& tell) {
  auto sensor = open_sensor(sensor_id);
  auto meter = meter_id.empty() ? nullptr : open_sensor(meter_id);
  // Results of an earlier calibration must not influence this one.
  SensorInfo info = sensor->info();
  info.gain = 1;
  info.offset = info.gain_error = info.level = info.level_error = 0;
  info.lag = 0;
  sensor->set_info(info);
  const auto device = device_for(device_id, info);
  if (tell)
    tell(fmt::format("calibrating {} with a load on {} ({}), about {} s", info.id, device->info().id,
                     device->info().name, meter_id.empty() ? 40 : 60));
  const auto rig = make_device_rig(*device, std::move(sensor), std::move(meter));
  return calibrate(*rig);
}

}  // namespace ergotune
