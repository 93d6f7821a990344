// Measures the energy of a region of code, independently of tuning.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// The energy of a region, or of all regions of one name, according to one sensor.
struct SensorEnergy {
  std::string sensor;  ///< "nvml:0/energy"
  /// J. nullopt if the sensor does not resolve the region: its 95 % interval would be wider than half of the value.
  std::optional<double> joules;
  double half_width = 0;  ///< J, of the 95 % interval of `joules`
  /// Upper bound in J, also for a region that is not resolved: the energy of all sensor updates that overlap with it,
  /// or of the most that the device can draw. nullopt if the sensor covers an unknown part of the time only.
  std::optional<double> at_most;
  /// J beyond the idle energy of the device; nullopt before EnergyMonitor::measure_idle() or set_idle_power().
  std::optional<double> above_idle;
  double above_idle_half_width = 0;
  std::string why_not;  ///< reason why there is neither a value nor a bound
};

/// The energy of a region, or of all regions of one name. Several sensors belong to different devices; the values here
/// are sums over all of them, and nullopt if one sensor lacks the value.
struct RegionEnergy {
  std::string name;
  std::uint64_t regions = 1;  ///< number of regions
  double seconds = 0;         ///< total duration, s
  std::optional<double> joules;
  double half_width = 0;
  std::optional<double> at_most, above_idle;
  double above_idle_half_width = 0;
  std::vector<SensorEnergy> sensors;
  /// One line of JSON: {"name", "regions", "seconds", "joules", "half_width", "at_most", "above_idle",
  /// "above_idle_half_width", "watts", "sensors": [...]}; missing values are null.
  std::string json() const;
};

class EnergyRegion;

/// Reads energy and power sensors in a separate thread, so that a region costs the caller only two clock readings.
/// Reads each sensor twice per update period, at least 10 and at most 50 times per second; the confidence intervals
/// account for the power that the reading itself takes. Keeps all readings: at most 3 MB per hour and sensor. A monitor
/// does not work in a process that was forked after its construction.
class EnergyMonitor {
 public:
  /// Opens sensors by id ("nvml:0", "rapl:package-0"; `ergotune devices` lists them); an empty list selects the best
  /// sensor of each device of this machine. Takes up to a second. Throws UserError for an unknown id, for sensors that
  /// measure the same energy, and if there is no sensor.
  explicit EnergyMonitor(const std::vector<std::string>& sensors = {});

  std::vector<std::string> sensors() const;
  /// Measures the idle power of the devices for `seconds` while the caller waits; regions have `above_idle` from then
  /// on. The caller must keep the devices idle.
  void measure_idle(double seconds = 1);
  /// Sets the idle power in W of each sensor, in the order of sensors(), instead of measuring it.
  void set_idle_power(const std::vector<double>& watts);

  /// Returns the sums over all finished regions of each name, in the order in which the names first occurred. Waits
  /// until the sensors cover the end of the last region, at most about a second.
  std::vector<RegionEnergy> totals() const;

 private:
  friend class EnergyRegion;
  struct State;
  std::shared_ptr<State> state_;
};

/// A region from construction to end() or destruction. Regions may be nested and may overlap, also between threads. GPU
/// work is asynchronous: synchronise before a region begins and before it ends.
class EnergyRegion {
 public:
  explicit EnergyRegion(const EnergyMonitor& monitor, std::string name = "region");
  EnergyRegion(EnergyRegion&&) noexcept;
  EnergyRegion& operator=(EnergyRegion&&) noexcept;
  ~EnergyRegion();
  void end();
  /// Ends the region if it has not ended, and returns its energy. Waits until the sensors cover its end, at most about
  /// a second. Throws UserError for a region that was moved from, and in a process that was forked meanwhile.
  RegionEnergy energy();

 private:
  std::shared_ptr<EnergyMonitor::State> state_;
  std::string name_;
  double from_ = 0, to_ = 0;
  bool ended_ = false;
};

}  // namespace ergotune
