// Series of readings: edges of a counter, updates of a power sensor, and the mean of correlated values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune {

struct CounterTick {
  double time = 0;         ///< s, middle of where it can have been
  double uncertainty = 0;  ///< s, width of where it can have been
  double value = 0;        ///< J
};

/// The edges at which a polled counter moved. `trouble` says what makes the readings unusable: it never
/// moved, it stood still for long, or it went back (wrapped, or the driver restarted).
std::vector<CounterTick> counter_ticks(const std::vector<Reading>& readings, double update_period,
                                       std::string& trouble);

/// One reading per update of a power sensor: repeated polls of one value are one update, at the time it was
/// first seen.
std::vector<Reading> power_updates(const std::vector<Reading>& readings, double update_period);

/// Mean power over a span of true time, as one reading of a sensor tells it.
struct PowerOver {
  double from = 0, to = 0;  ///< s
  double watts = 0;
  double middle() const { return 0.5 * (from + to); }
  double joules() const { return watts * (to - from); }
};

/// What a power sensor says of the span, reading by reading: each speaks of its window, shifted by the
/// sensor's lag (Guerreiro et al. (2015), eq. 6, first where the sensor is exponential). A counter says it
/// from tick to tick. Readings that reach out of the span or into a pause are left out; none when the
/// readings are unusable.
std::vector<PowerOver> power_series(const SensorTrace& trace, TimeSpan span, const std::vector<TimeSpan>& pauses);

/// Whether something between two times touches a pause.
bool touches(const std::vector<TimeSpan>& pauses, double from, double to);

/// A mean with a standard error that respects correlation.
struct SeriesMean {
  double mean = 0, standard_error = 0, degrees = 0;
};
/// Batch means over up to 20 batches, widened by the correlation that is left between neighbouring batches.
SeriesMean batch_mean(std::span<const double> values);
/// Readings whose windows overlap (window > period): the variance of a period's power from differences of
/// neighbours, weighted by how often each period is counted.
SeriesMean overlapping_mean(std::span<const double> values, double window, double period);
/// Relative change over the series (values near 1) when its slope exceeds three standard errors; else 0.
double significant_drift(std::span<const double> times, std::span<const double> relative);

}  // namespace ergotune
