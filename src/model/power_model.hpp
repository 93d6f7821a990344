// Power over core clock, and the clock that needs least energy (Going Green, Section III-A and V-D, eq. 2 and
// 3).
//
//   P(f) = min(P_max, P_idle + a f v(f)^2),   v(f) = 1 + b max(0, f - ridge)
//
// v is the core voltage relative to its value below the ridge point; eq. 3 as printed drops to 0 at the
// ridge, this is its continuous form. A compute-bound kernel needs a time proportional to 1/f, so its energy
// goes with P(f)/f. Everything is fitted in the logarithm of power: errors of power sensors are proportional.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ergotune {

/// Power at a clock, of one kernel that loads the device in the same way at every clock.
struct PowerSample {
  /// The clock that it really ran at, MHz; the requested one where no more is known.
  double clock_mhz = 0;
  double power_w = 0;
  /// Standard error of power_w; 0 when unknown (all samples then count with the same relative error).
  double power_error_w = 0;
  std::optional<double> voltage_v;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_c;
};

/// A value with its interval.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// Equation 2 with 3 in its continuous form.
struct PowerCurve {
  double idle_w = 0;
  double dynamic_w_per_mhz = 0;
  double voltage_slope_per_mhz = 0;
  double ridge_mhz = 0;
  double max_power_w = std::numeric_limits<double>::infinity();

  double voltage(double clock_mhz) const;
  double power(double clock_mhz) const;
  /// Energy per 10^6 cycles, J: power over clock.
  double energy_per_megacycle(double clock_mhz) const;
  /// The clock with least energy per work inside [low, high]: at the ridge, above it where idle power is
  /// high, or at an end. Clocks that the power cap forbids are never chosen.
  double optimal_clock(double low_mhz, double high_mhz) const;
  /// Where power reaches max_power_w; infinity when it never does.
  double throttle_clock() const;
};

struct PowerModelOptions {
  double confidence = 0.95;
  /// Range in which the energy-optimal clock is looked for; the samples' range when not given.
  std::optional<double> low_mhz, high_mhz;
  /// Level of the F-test of a ridge against a straight line. Stricter than 5 % because the place of the ridge
  /// is chosen after seeing the data.
  double ridge_level = 0.10;
};

struct PowerModel {
  /// Enough samples to fit at least idle and dynamic power.
  bool usable = false;
  /// A ridge point lies inside the samples' range.
  bool found = false;
  /// Why there is no ridge, in words; empty when there is one.
  std::string why_not;
  PowerCurve curve;
  Estimate idle_w, dynamic_w_per_mhz;
  /// Only meaningful when `found` or when the voltage rises over the whole range.
  Estimate voltage_slope_per_mhz, ridge_mhz;
  /// Set where the data show a power cap.
  std::optional<Estimate> max_power_w;
  /// W per MHz of memory clock and W per degree above the samples' mean; set where cross-validation favours
  /// them.
  std::optional<Estimate> memory_w_per_mhz, temperature_w_per_c;
  /// Least energy per work within [low_mhz, high_mhz].
  Estimate optimal_clock_mhz;
  double low_mhz = 0, high_mhz = 0;
  std::size_t samples = 0;
  /// Relative standard deviation of the samples around the curve.
  double relative_deviation = 0;
  bool voltage_measured = false;
  std::vector<std::string> notes;

  /// Relative standard error of the modelled power at a clock.
  double relative_error(double clock_mhz) const;
  /// Parameters' covariance, row by row: idle, dynamic, slope, ridge, cap.
  std::vector<double> covariance;
};

/// Fits; never throws on noisy or scarce data (`usable` says whether there is a result).
PowerModel fit_power_model(std::span<const PowerSample> samples, const PowerModelOptions& options = {});

/// A range of clocks around the optimum.
struct ClockRange {
  double low_mhz = 0, high_mhz = 0;
  /// Share of the clocks in the full range that it leaves out.
  double removed_share = 0;
};

/// `share` (0.1: Going Green's +-10 %) around the modelled optimum, cut to the model's range. With a list of
/// supported clocks the range ends on them and the removed share counts them; else it is a share of the
/// range's length.
ClockRange suggested_range(const PowerModel& model, double share = 0.1, std::span<const double> clocks = {});

/// Of `clocks` the one with least modelled energy per work; those that the power cap forbids are never chosen. The
/// optimum of the curve itself may lie between two, at a ridge where one of them is far dearer than the other. nullopt
/// for none.
std::optional<double> best_clock(const PowerModel& model, std::span<const double> clocks);

/// The clock among `candidates` where a further sample teaches most: where the modelled power is least
/// certain, never one that was sampled. nullopt when none is left.
std::optional<double> next_clock(const PowerModel& model, std::span<const PowerSample> samples,
                                 std::span<const double> candidates);

/// `count` values spaced evenly over the sorted candidates, ends included.
std::vector<double> spaced_clocks(std::span<const double> candidates, std::size_t count);

}  // namespace ergotune
