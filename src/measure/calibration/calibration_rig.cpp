// Calibration on a real device: a compute kernel as the load, and a separate thread that reads the sensor.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "measure/calibration/calibration.hpp"
#include "measure/energy/device_load.hpp"

namespace ergotune {
namespace {

class DeviceRig : public CalibrationRig {
 public:
  DeviceRig(Device& device, std::unique_ptr<Sensor> sensor, std::unique_ptr<Sensor> meter)
      : load_(device), sensor_(std::move(sensor)), meter_(std::move(meter)) {}

  const SensorInfo& sensor() const override { return sensor_->info(); }
  bool has_meter() const override { return meter_ != nullptr; }
  std::string meter_id() const override { return meter_ ? meter_->info().id : ""; }

  std::vector<double> read_costs() override {
    std::vector<double> costs;
    std::vector<Reading> ignored;
    for (int i = 0; i < 50; ++i) {
      const double before = host_seconds();
      if (sensor_->read(ignored) == ReadStatus::failed) throw Error(sensor_->info().id + ": " + sensor_->last_error());
      costs.push_back(host_seconds() - before);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return costs;
  }

  CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) override {
    CalibrationTrace trace;
    sensor_->restart();
    if (meter && meter_) meter_->restart();
    std::atomic<bool> stop = false;
    std::string failure;
    std::thread reader([&] {
      while (!stop) {
        const double before = host_seconds();
        if (sensor_->read(trace.readings) == ReadStatus::failed) failure = sensor_->last_error();
        if (meter && meter_) meter_->read(*meter);
        const double used = host_seconds() - before;
        std::this_thread::sleep_for(std::chrono::duration<double>(std::max(5e-4 - used, std::min(used, 5e-3))));
      }
    });
    try {
      // Follows an absolute schedule, so that late wake-ups do not accumulate.
      double due = host_seconds();
      for (std::size_t i = 0; i < on_off.size(); ++i) {
        due += on_off[i];
        if (i % 2 == 0) {
          if (on_off[i] > 0) trace.busy.push_back(load_.work_until(due));
        } else {
          std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, due - host_seconds())));
        }
      }
    } catch (...) {
      stop = true;
      reader.join();
      throw;
    }
    stop = true;
    reader.join();
    if (trace.readings.empty() && !failure.empty()) throw Error(sensor_->info().id + ": " + failure);
    return trace;
  }

 private:
  DeviceLoad load_;
  std::unique_ptr<Sensor> sensor_, meter_;
};

/// Returns the device that loads the sensor's GPU: the named one, else the one with the same UUID or PCI address.
std::unique_ptr<Device> device_for(const std::string& named, const SensorInfo& sensor) {
  if (!named.empty()) return open_device(named);
  for (const auto& info : list_devices()) {
    const bool same_uuid = !sensor.uuid.empty() && info.uuid == sensor.uuid;
    const bool same_pci = !sensor.pci_address.empty() && info.pci_address == sensor.pci_address;
    if (same_uuid || same_pci) return open_device(info.id);
  }
  throw UserError(
      fmt::format("calibrate: no device has the UUID or PCI address of sensor {}; name the device whose load it sees "
                  "with --device, or device= in Python (\"ergotune devices\" lists them)",
                  sensor.id));
}

}  // namespace

std::unique_ptr<CalibrationRig> make_device_rig(Device& device, std::unique_ptr<Sensor> sensor,
                                                std::unique_ptr<Sensor> meter) {
  return std::make_unique<DeviceRig>(device, std::move(sensor), std::move(meter));
}

Calibration calibrate_sensor(const std::string& sensor_id, const std::string& device_id, const std::string& meter_id,
                             const std::function<void(const std::string&)>& notify) {
  auto sensor = open_sensor(sensor_id);
  auto meter = meter_id.empty() ? nullptr : open_sensor(meter_id);
  // Results of an earlier calibration must not influence this one.
  SensorInfo info = sensor->info();
  info.gain = 1;
  info.offset = info.gain_error = info.level = info.level_error = 0;
  info.lag = 0;
  sensor->set_info(info);
  const auto device = device_for(device_id, info);
  if (notify)
    notify(fmt::format("calibrating {} with a load on {} ({}), about {} s", info.id, device->info().id,
                       device->info().name, meter_id.empty() ? 40 : 60));
  const auto rig = make_device_rig(*device, std::move(sensor), std::move(meter));
  return calibrate(*rig);
}

}  // namespace ergotune
