// Series of readings: ticks of a counter, updates of a power sensor, and means of correlated values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune {

struct CounterTick {
  double time = 0;         ///< s, centre of the interval in which it occurred
  double uncertainty = 0;  ///< s, length of that interval
  double value = 0;        ///< J
};

/// Returns the ticks of a polled counter. `failure` receives the reason if the readings are unusable: the counter never
/// changed, stopped for long, or decreased (wrapped, or the driver restarted).
std::vector<CounterTick> counter_ticks(const std::vector<Reading>& readings, double update_period,
                                       std::string& failure);

/// Returns one reading per update of a power sensor: repeated values within an update period are one update, at the
/// time at which it was first read.
std::vector<Reading> power_updates(const std::vector<Reading>& readings, double update_period);

/// Mean power over a span of true time, from one reading of a sensor.
struct PowerOver {
  double from = 0, to = 0;  ///< s
  double watts = 0;
  double middle() const { return 0.5 * (from + to); }
  double joules() const { return watts * (to - from); }
};

/// Returns the mean power for each reading that refers to the span. A reading of a power sensor refers to its averaging
/// window, shifted by the lag (exponential sensors: Guerreiro et al. (2015), eq. 6, is applied first); a counter yields
/// a value from tick to tick. Readings that extend beyond the span or into a pause are left out; the result is empty if
/// the readings are unusable.
std::vector<PowerOver> power_series(const SensorTrace& trace, TimeSpan span, const std::vector<TimeSpan>& pauses);

/// True if the interval overlaps with a pause.
bool touches(const std::vector<TimeSpan>& pauses, double from, double to);

/// A mean with a standard error that accounts for correlation.
struct SeriesMean {
  double mean = 0, standard_error = 0, degrees = 0;
};
/// Batch means over up to 20 batches, widened by the remaining correlation between neighbouring batches.
SeriesMean batch_mean(std::span<const double> values);
/// Mean of readings with overlapping windows (window > period). The variance of the power of one period is estimated
/// from differences of neighbours and weighted by the number of windows that contain each period.
SeriesMean overlapping_mean(std::span<const double> values, double window, double period);
/// Returns the relative change over the series (values near 1) if its slope exceeds three standard errors; else 0.
double significant_drift(std::span<const double> times, std::span<const double> relative);

}  // namespace ergotune
