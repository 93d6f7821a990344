// Base class and helpers of sensors that read small text files (tegra, amdgpu, rapl, pm_counters).
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/sysfs.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {

/// Holds the properties and the last failure.
class SysfsSensor : public Sensor {
 public:
  SysfsSensor(Sysfs sysfs, SensorInfo info) : sysfs_(std::move(sysfs)), info_(std::move(info)) {}
  const SensorInfo& info() const override { return info_; }
  void set_info(const SensorInfo& info) override { info_ = info; }
  std::string last_error() const override { return error_; }

 protected:
  double corrected(double value) const { return info_.gain * value + info_.offset; }
  ReadStatus fail(std::string message) {
    error_ = std::move(message);
    return ReadStatus::failed;
  }
  Sysfs sysfs_;
  SensorInfo info_;

 private:
  std::string error_;
};

/// True if the file exists but this process may not read it.
bool exists_unreadable(const Sysfs& sysfs, const std::filesystem::path& path);

/// Returns the sensor of `list` with this id, or the first one for the bare name of the family ("tegra"). Throws
/// UserError that lists the available sensors, or `notes` as the reasons if there are none.
const SensorInfo& choose_sensor(const std::string& id, const std::string& family, const std::vector<SensorInfo>& list,
                                const std::vector<std::string>& notes);

std::unique_ptr<SensorFamily> make_tegra_family();
std::unique_ptr<SensorFamily> make_amdgpu_family();
std::unique_ptr<SensorFamily> make_rapl_family();
std::unique_ptr<SensorFamily> make_pm_counters_family();
std::unique_ptr<SensorFamily> make_powersensor3_family();
std::unique_ptr<SensorFamily> make_powersensor2_family();

}  // namespace ergotune
