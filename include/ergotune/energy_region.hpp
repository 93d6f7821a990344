// Energy of a region of code, without tuning anything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// What one sensor saw of a region, or of all regions of one name.
struct SensorEnergy {
  std::string sensor;  ///< "nvml:0/energy"
  /// J. nullopt where the sensor does not resolve the region: its 95 % interval would be wider than half of the value.
  std::optional<double> joules;
  double half_width = 0;  ///< J, of the 95 % interval of `joules`
  /// J that the region needs at most, whether it is resolved or not: of all updates that it touches, or of the most
  /// that the device can draw. nullopt where the sensor sees only part of the time and that is not known.
  std::optional<double> at_most;
  /// J beyond what the device needs idle; only after EnergyMonitor::measure_idle(), or with a given idle power.
  std::optional<double> above_idle;
  double above_idle_half_width = 0;
  std::string why_not;  ///< why there is neither a value nor a bound
};

/// The energy of a region, or of all regions of one name. Where there are several sensors, they are of different
/// devices and the sums are of all of them: a sum is there if every sensor has the value.
struct RegionEnergy {
  std::string name;
  std::uint64_t regions = 1;  ///< how many regions these are
  double seconds = 0;         ///< s of all of them
  std::optional<double> joules;
  double half_width = 0;
  std::optional<double> at_most, above_idle;
  double above_idle_half_width = 0;
  std::vector<SensorEnergy> sensors;
  /// {"name", "regions", "seconds", "joules", "half_width", "at_most", "above_idle", "above_idle_half_width",
  /// "watts", "sensors": [...]}; null where there is no value. One line.
  std::string json() const;
};

class EnergyRegion;

/// Reads energy and power sensors in a thread of its own, so that a region costs two readings of the clock. Each sensor
/// is read twice in its update period, at least 10 and at most 50 times a second; the share of the time that this takes
/// is part of the intervals. Readings are kept: 3 MB an hour and sensor at most. A monitor does not work in a process
/// that is forked after it was made.
class EnergyMonitor {
 public:
  /// Sensors by id ("nvml:0", "rapl:package-0"; `ergotune devices` lists them); without any, the best one of each
  /// device of this machine. Takes up to a second. Throws UserError for an unknown id, for sensors that see the same
  /// energy, and where there is no sensor.
  explicit EnergyMonitor(const std::vector<std::string>& sensors = {});

  std::vector<std::string> sensors() const;
  /// Measures what the devices need idle, for so many seconds, while the caller waits; regions have `above_idle` from
  /// then on. The devices have to be idle.
  void measure_idle(double seconds = 1);
  /// W of each sensor in place of a measurement, in the order of sensors().
  void set_idle_power(const std::vector<double>& watts);

  /// The regions that have ended, by name, in the order in which the names came: sums over all regions of a name. Waits
  /// until the sensors have answered for the last one, at most about a second.
  std::vector<RegionEnergy> totals() const;

 private:
  friend class EnergyRegion;
  struct State;
  std::shared_ptr<State> state_;
};

/// From its construction to end() or its destruction. Regions may be nested and overlap, also between threads. Work on
/// a GPU is asynchronous: synchronise before a region begins and before it ends.
class EnergyRegion {
 public:
  explicit EnergyRegion(const EnergyMonitor& monitor, std::string name = "region");
  EnergyRegion(EnergyRegion&&) noexcept;
  EnergyRegion& operator=(EnergyRegion&&) noexcept;
  ~EnergyRegion();
  void end();
  /// Ends it if it still runs. Waits until the sensors have answered for its end, at most about a second. Throws
  /// UserError for a region that was moved from, and in a process that was forked meanwhile.
  RegionEnergy energy();

 private:
  std::shared_ptr<EnergyMonitor::State> state_;
  std::string name_;
  double from_ = 0, to_ = 0;
  bool ended_ = false;
};

}  // namespace ergotune
