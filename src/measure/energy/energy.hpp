// Energy per launch with a valid confidence interval. Energy and time are measured on the same launches: a stream of
// back-to-back launches with a full queue, sensors that are read by a separate thread, and one regression of the
// sensor's energy on the number of completed launches. The estimators are pure functions of recorded data; EnergyMeter
// records.
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

/// The readings of one sensor in order of time, and its properties.
struct SensorTrace {
  SensorInfo info;
  std::vector<Reading> readings;
  /// Error message if a read failed, after which there are no more readings; else empty.
  std::string failure;
};

/// A span of host time.
struct TimeSpan {
  double from = 0, to = 0;
  double length() const { return to - from; }
};

/// Number of completed launches as a function of host time, from the marks of a stream. Host times are corrected for
/// the delay with which the host observed the marks: device time is exact between marks, and the smallest delay
/// observed is taken as the true offset.
class LaunchAxis {
 public:
  explicit LaunchAxis(const LaunchStream& stream);
  /// Returns the number of launches completed at a host time, including fractions; linear between marks.
  double launches_at(double host_time) const;
  /// Host times of the first and the last mark.
  double begin() const { return times_.empty() ? 0 : times_.front(); }
  double end() const { return times_.empty() ? 0 : times_.back(); }
  const std::vector<double>& times() const { return times_; }
  const std::vector<double>& launches() const { return launches_; }
  /// Spans in which the queue was left empty on purpose (phase jitter): two marks with the same number of launches.
  const std::vector<TimeSpan>& pauses() const { return pauses_; }
  /// Device time per launch within a span without its pauses; the standard error is computed from batches of marks.
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
  std::string why_not;  ///< reason if not valid
  double value = 0;     ///< J per unit of the axis
  double standard_error = 0;
  double degrees = 0;        ///< degrees of freedom of the standard error
  std::int64_t n = 0;        ///< increments or independent readings used
  TimeSpan covered;          ///< span of true power to which the readings refer
  double drift = 0;          ///< relative change over the span if it is significant, else 0
  double repeatability = 0;  ///< of the GPU (SensorInfo::repeatability); not included in standard_error
  double systematic =
      0;                 ///< relative standard deviation that the calibration's gain leaves open; not in standard_error
  bool metered = false;  ///< its gain was calibrated against a better meter
  SensorScope scope = SensorScope::gpu;
  std::string method;
  std::string sensor;
  std::vector<std::string> warnings;
  /// Half-width of the 95 % interval.
  double half_width() const;
};

/// The regressor: host time yields W, completed launches yield J per launch.
using EnergyAxis = std::function<double(double host_time)>;

/// Estimates the slope of a sensor's energy on an axis from those readings that refer to `span` only.
///
/// Counters: increments between tick edges, generalised least squares with white noise at the edges (late observation
/// of a tick, unit step) and a random walk (the remaining scatter of the increments); regression over ticks and mean
/// increment are its two limits. Windowed: mean of readings whose window [t - lag - window, t - lag] lies inside the
/// span, with batch means, or the scatter of differences if windows overlap. Exponential: Guerreiro et al. (2015), eq.
/// 6, is applied first. There is no value if a counter is zero, negative, stopped or wrapped, or if readings are
/// impossible for such a GPU (SensorInfo::min_power, most_power, always_fluctuates). Readings that refer to a pause are
/// left out.
SlopeEstimate estimate_slope(const SensorTrace& trace, TimeSpan span, const EnergyAxis& axis,
                             const std::vector<TimeSpan>& pauses = {});

/// Converts readings of a first-order sensor to power: P(t_i) = R(t_i) + C (R(t_i+1) - R(t_i-1)) / (t_i+1 - t_i-1),
/// Guerreiro et al. (2015), eq. 6. Drops the first and the last reading.
std::vector<Reading> undo_exponential_lag(const std::vector<Reading>& readings, double constant);

/// Combines estimates of one quantity by several sensors of one GPU: the mean of those that are precise enough, with an
/// interval that also covers their disagreement. If some sensors were calibrated against a better meter, only these are
/// used. If two precise estimates contradict each other, the result is not valid.
SlopeEstimate combine(const std::vector<SlopeEstimate>& estimates);

/// An estimate whose 95 % confidence interval extends further than this share of the value to either side is discarded.
inline constexpr double kWidestInterval = 0.5;

struct EnergyOptions {
  /// Target for the half-width of the 95 % confidence interval relative to the value; applies to the part of the
  /// interval that shrinks with a longer measurement.
  double precision = 0.01;
  /// Maximum duration of the launches of a configuration in s, settling included; 0: 1 s, or longer if the sensor needs
  /// it.
  double budget = 0;
  /// Uses the complete budget regardless of the precision, and reports status ok; for reference measurements. The model
  /// for power-capped GPUs, which would shorten it, is not used.
  bool whole_budget = false;
  double settle_at_least = 0.15;  ///< minimum time for settling, s
  double settle_at_most = 0.5;    ///< maximum time for settling, share of the budget
  double power_tolerance = 0.02;  ///< power has settled if its relative change over the settling window is below this
  double rate_tolerance = 0.01;   ///< likewise for the launch rate
  double window_at_least = 0.25;  ///< minimum duration in s before an interval is trusted
  double sensor_period = 1e-3;    ///< s between reads
  double monitor_period = 0.1;
  std::optional<double> idle_power;  ///< W; gives idle_subtracted_energy
  double idle_power_error = 0;       ///< standard error of idle_power, W
  /// Yields corrected_energy: the energy that the same launches would use at a temperature of `celsius`.
  struct TemperatureCorrection {
    double celsius = 50, watts_per_degree = 0, standard_error = 0;
  };
  std::optional<TemperatureCorrection> correction;
  /// Duration in s of a pause before the first configuration, in which idle power is measured if it is unknown; 0:
  /// none.
  double idle_pause = 0;
  bool keep_trace = false;
  /// Also use other sensors of the same GPU if there are any.
  bool combine_sensors = true;
};

/// Everything recorded during one configuration, so that estimators can be evaluated again later.
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
  /// Half-width of the reported 95 % confidence interval in J per launch, including the GPU's repeatability.
  double half_width = 0;
  /// The part of half_width that a longer measurement reduces; compared with the requested precision.
  double scatter_half_width = 0;
  double drift = 0;
};

/// Returns the shortest duration in s for which a sensor yields a useful interval.
double shortest_measurement(const SensorInfo& info);
/// Returns the host time from which readings count, because power and launch rate have settled; nullopt if they have
/// not yet.
std::optional<double> settled_from(const EnergyTrace& trace, const EnergyOptions& options, double now);
/// Estimates energy, power and time per launch from the data recorded after `settled_at`.
EnergyResult estimate_energy(const EnergyTrace& trace, const EnergyOptions& options);

/// True if a running measurement may end: the precision is met by enough readings. Stopping at the first sufficient
/// result would make the interval cover less often than claimed.
bool precise_enough(const EnergyResult& result, const EnergyOptions& options);

/// The clock that a meter uses.
struct MeterTime {
  static void sleep_on_host(double seconds);
  std::function<double()> now = host_seconds;
  std::function<void(double seconds)> sleep = sleep_on_host;
};

/// Records sensors, GPU state and launches of a stream, and decides when to stop. One per runner.
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
  bool cannot_become_best(const EnergyResult& so_far) const;
  void measure_idle_power();
  std::vector<std::unique_ptr<Sensor>> sensors_;
  std::unique_ptr<DeviceMonitor> monitor_;
  EnergyOptions options_;
  MeterTime time_;
  ObservedConfiguration configuration_;
  double budget_ = 1;
  std::mutex mutex_;  ///< protects trace_, which during() and the measuring thread use
  EnergyTrace trace_;
  EnergyResult result_;
  double next_evaluation_ = 0, next_gpu_ = 0, next_pause_ = 0;
  bool settled_ = false, gave_up_ = false;
  int consecutive_precise_ = 0;
  std::uint64_t jitter_ = 0;
};

/// The sensors and the monitor of a device: the sensors with the given `ids`, or by default those of the device. Throws
/// UserError for an unknown id, and, with a list of what was searched, if there is no sensor.
struct EnergySources {
  std::vector<std::unique_ptr<Sensor>> sensors;
  std::unique_ptr<DeviceMonitor> monitor;
};
EnergySources energy_sources(const std::vector<std::string>& ids, const std::string& device_name,
                             const std::string& uuid, const std::string& pci_address, bool is_cpu);

}  // namespace ergotune
