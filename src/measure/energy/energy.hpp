// Energy per launch with an interval that holds. Energy and time belong to the same launches: a stream of
// back-to-back launches with a full queue, sensors read by a thread of their own, and one regression of the
// sensor's energy on the number of launches completed. The estimators are pure functions of what was
// recorded; EnergyMeter records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "ergotune/observer.hpp"
#include "ergotune/result.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// What one sensor said, in order of time, and what its readings mean.
struct SensorTrace {
  SensorInfo info;
  std::vector<Reading> readings;
  /// A read failed on the way; the readings end there.
  std::string failure;
};

/// A span of host time.
struct TimeSpan {
  double from = 0, to = 0;
  double length() const { return to - from; }
};

/// Launches completed as a function of host time: the marks of a stream, their host times corrected for the
/// delay with which the host saw them (device time is exact between marks; the smallest delay seen is taken
/// as the true offset).
class LaunchAxis {
 public:
  explicit LaunchAxis(const LaunchStream& stream);
  /// Launches completed at a host time, fractions included; linear between marks.
  double launches_at(double host_time) const;
  /// Host times of the first and the last mark.
  double begin() const { return times_.empty() ? 0 : times_.front(); }
  double end() const { return times_.empty() ? 0 : times_.back(); }
  const std::vector<double>& times() const { return times_; }
  const std::vector<double>& launches() const { return launches_; }
  /// Stretches where the queue was left empty on purpose (phase jitter): two marks with the same number of
  /// launches.
  const std::vector<TimeSpan>& pauses() const { return pauses_; }
  /// Device time per launch inside a span, with its standard error from batches of marks; pauses are left
  /// out.
  struct PerLaunch {
    double seconds = 0, standard_error = 0;
    std::int64_t launches = 0;
  };
  PerLaunch time_per_launch(TimeSpan span) const;

 private:
  std::vector<double> times_, launches_;
  std::vector<TimeSpan> pauses_;
};

/// A slope with its uncertainty.
struct SlopeEstimate {
  bool valid = false;
  std::string why_not;  ///< when not valid
  double value = 0;     ///< J per unit of the axis
  double standard_error = 0;
  double degrees = 0;        ///< of freedom of the standard error
  std::int64_t n = 0;        ///< increments or independent readings used
  TimeSpan covered;          ///< true power over this span is what the readings speak of
  double drift = 0;          ///< relative change over the span where it is significant, else 0
  double repeatability = 0;  ///< of the GPU, SensorInfo::repeatability; not in standard_error
  double systematic =
      0;                 ///< relative standard deviation that the calibration's gain leaves open; not in standard_error
  bool metered = false;  ///< its gain was taken from a better meter
  SensorScope scope = SensorScope::gpu;
  std::string method;
  std::string sensor;
  std::vector<std::string> warnings;
  /// Half-width of the 95 % interval.
  double half_width() const;
};

/// What energy is regressed on: host time gives W, completed launches give J per launch.
using EnergyAxis = std::function<double(double host_time)>;

/// Slope of a sensor's energy on an axis over the part of its readings that speaks of `span` only.
///
/// Counters: increments between tick edges, generalised least squares with white noise at the edges (tick
/// seen late, unit step) and a random walk (what the increments scatter beyond that); regression over ticks
/// and increment mean are its two limits. Windowed: mean of readings whose window [t - lag - window, t - lag]
/// lies inside the span; batch means, or where windows overlap the scatter of differences. Exponential:
/// Guerreiro et al. (2015), eq. 6, first. Zero, negative, stopped or wrapped counters give no value, nor do readings
/// that no such GPU can give (SensorInfo::least_power, most_power, never_still). Readings that speak of a pause are
/// left out.
SlopeEstimate estimate_slope(const SensorTrace& trace, TimeSpan span, const EnergyAxis& axis,
                             const std::vector<TimeSpan>& pauses = {});

/// Readings of a first-order sensor turned into power: P(t_i) = R(t_i) + C (R(t_i+1) - R(t_i-1)) / (t_i+1 -
/// t_i-1), Guerreiro et al. (2015), eq. 6. The first and last reading are left out.
std::vector<Reading> undo_exponential_lag(const std::vector<Reading>& readings, double constant);

/// Estimates of one quantity by several sensors of one GPU: the mean of those that are precise enough, with
/// an interval that also covers their disagreement. Those whose gain was taken from a better meter stand alone. Where
/// two that know it well say quite different things, none is believed.
SlopeEstimate combine(const std::vector<SlopeEstimate>& estimates);

/// A value whose 95 % interval is wider than this share of it to either side says nothing: it is no result.
inline constexpr double kWidestInterval = 0.5;

struct EnergyOptions {
  /// Target half-width of the 95 % interval over the value, as far as measuring longer can make it
  /// smaller.
  double precision = 0.01;
  /// Seconds of launches per configuration at most, settling included; 0: 1 s, or what the sensor needs if
  /// longer.
  double budget = 0;
  /// Use the whole budget whatever the precision, and call it ok: a reference. No model of a power-capped GPU
  /// shortens it: plain means only.
  bool whole_budget = false;
  double settle_at_least = 0.15;  ///< s
  double settle_at_most = 0.5;    ///< share of the budget
  double power_tolerance = 0.02;  ///< relative change of power over the settling window that counts as settled
  double rate_tolerance = 0.01;   ///< relative change of the launch rate
  double window_at_least = 0.25;  ///< s measured before an interval is believed
  double sensor_period = 1e-3;    ///< s between reads
  double monitor_period = 0.1;
  std::optional<double> idle_power;  ///< W; gives idle_subtracted_energy
  double idle_power_error = 0;       ///< its standard error
  /// Gives corrected_energy: what the same launches would have used at `celsius`.
  struct TemperatureCorrection {
    double celsius = 50, watts_per_degree = 0, standard_error = 0;
  };
  std::optional<TemperatureCorrection> correction;
  /// s of a pause before the first configuration in which idle power is measured, where it is not known; 0: none.
  double idle_pause = 0;
  bool keep_trace = false;
  /// Also use other sensors of the same GPU where there are several.
  bool combine_sensors = true;
};

/// Everything that was recorded about one configuration: estimators can be judged again offline.
struct EnergyTrace {
  std::vector<SensorTrace> sensors;
  LaunchStream stream;
  std::vector<std::pair<double, DeviceState>> gpu;
  double settled_at = 0;  ///< host time
};

struct EnergyResult {
  Status status = Status::ok;
  std::string message;
  std::map<std::string, Quantity> quantities;
  std::vector<std::string> warnings;
  TimeSpan measured;
  bool settled = false;
  /// J per launch, 95 %: what the reported interval is, the GPU's repeatability included.
  double half_width = 0;
  /// The part of it that measuring longer makes smaller; what a precision is asked of.
  double scatter_half_width = 0;
  double drift = 0;
};

/// Shortest span, s, from which a sensor gives an interval worth having.
double shortest_measurement(const SensorInfo& info);
/// When power and launch rate have stopped changing: the host time from which readings count; nullopt when
/// not yet.
std::optional<double> settled_from(const EnergyTrace& trace, const EnergyOptions& options, double now);
/// Energy, power and time per launch from what was recorded after `settled_at`.
EnergyResult estimate_energy(const EnergyTrace& trace, const EnergyOptions& options);

/// True when a measurement that is looked at while it runs may end: the precision is met by enough readings
/// that it is not luck (stopping at the first good look would make the interval cover less than it claims).
bool precise_enough(const EnergyResult& result, const EnergyOptions& options);

/// The time that a meter goes by.
struct MeterTime {
  static void sleep_on_host(double seconds);
  std::function<double()> now = host_seconds;
  std::function<void(double seconds)> sleep = sleep_on_host;
};

/// Records sensors, GPU and launches of a stream and decides when there is enough. One per runner.
class EnergyMeter : public Observer {
 public:
  EnergyMeter(std::vector<std::unique_ptr<Sensor>> sensors, std::unique_ptr<DeviceMonitor> monitor,
              EnergyOptions options, MeterTime time = {});
  std::string name() const override { return "energy"; }
  void register_configuration(const ObservedConfiguration& configuration) override;
  void before_start() override;
  void during() override;
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  bool wants_more(const LaunchStream& so_far) override;
  double wanted_mark_period() const override { return 0.005; }
  double wanted_pause() override;
  void finished(const LaunchStream& stream) override;
  std::map<std::string, Quantity> results() override { return result_.quantities; }
  std::vector<std::string> warnings() override { return result_.warnings; }
  Status verdict(std::string& message) override;

  const EnergyResult& result() const { return result_; }
  const EnergyTrace& trace() const { return trace_; }
  double budget() const { return budget_; }

 private:
  bool cannot_win(const EnergyResult& so_far) const;
  void measure_idle_power();
  std::vector<std::unique_ptr<Sensor>> sensors_;
  std::unique_ptr<DeviceMonitor> monitor_;
  EnergyOptions options_;
  MeterTime time_;
  ObservedConfiguration configuration_;
  double budget_ = 1;
  std::mutex mutex_;  ///< trace_ between the thread of during() and the measuring thread
  EnergyTrace trace_;
  EnergyResult result_;
  double next_look_ = 0, next_gpu_ = 0, next_pause_ = 0;
  bool settled_ = false, gave_up_ = false;
  int looks_good_ = 0;
  std::uint64_t jitter_ = 0;
};

/// The sensors and the monitor for a device: those that `ids` names, else the device's own. Throws UserError:
/// for an unknown id, or where there is no sensor, with one message that names what was looked for.
struct EnergySources {
  std::vector<std::unique_ptr<Sensor>> sensors;
  std::unique_ptr<DeviceMonitor> monitor;
};
EnergySources energy_sources(const std::vector<std::string>& ids, const std::string& device_name,
                             const std::string& uuid, const std::string& pci_address, bool is_cpu);

}  // namespace ergotune
