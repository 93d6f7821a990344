// Power over core clock, and the clock that needs the least energy (Going Green, Section III-A and V-D, eq. 2 and 3).
//
//   P(f) = min(P_max, P_idle + a f v(f)^2),   v(f) = 1 + b max(0, f - ridge)
//
// v is the core voltage relative to its value below the ridge point. Eq. 3 as printed drops to 0 at the ridge; this is
// its continuous form. The time of a compute-bound kernel is proportional to 1/f, so that its energy is proportional to
// P(f)/f. All fits use the logarithm of power, since errors of power sensors are relative.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ergotune {

/// Power at a clock, of a kernel that loads the device equally at all clocks.
struct PowerSample {
  /// The actual clock in MHz; the requested one if it is unknown.
  double clock_mhz = 0;
  double power_w = 0;
  /// Standard error of power_w; 0: unknown (all samples then have the same relative error).
  double power_error_w = 0;
  std::optional<double> voltage_v;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_c;
};

/// A value with its confidence interval.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// Equation 2 with equation 3 in its continuous form.
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
  /// The clock with the least energy per work within [low, high]: at the ridge, above it if idle power is high, or at
  /// an end. Clocks beyond the power cap are never chosen.
  double optimal_clock(double low_mhz, double high_mhz) const;
  /// The clock at which power reaches max_power_w; infinity if it never does.
  double throttle_clock() const;
};

struct PowerModelOptions {
  double confidence = 0.95;
  /// Range of clocks that may be optimal; default: the samples' range.
  std::optional<double> low_mhz, high_mhz;
  /// Significance level of the F-test that decides between a ridge and a straight line: the share of devices without a
  /// ridge for which one is reported. Not from the papers, which fit a ridge always. A ridge that is overlooked costs
  /// more than one that is not there, whose curve is nearly straight: therefore not 0.05.
  double ridge_level = 0.10;
};

struct PowerModel {
  /// Whether there are enough samples to fit at least idle and dynamic power.
  bool usable = false;
  /// Whether a ridge point lies inside the samples' range.
  bool found = false;
  /// Why there is no ridge point, as text; empty if there is one.
  std::string why_not;
  PowerCurve curve;
  Estimate idle_w, dynamic_w_per_mhz;
  /// Meaningful if `found`, or if the voltage rises over the whole range.
  Estimate voltage_slope_per_mhz, ridge_mhz;
  /// Set if the data show a power cap.
  std::optional<Estimate> max_power_w;
  /// W per MHz of memory clock and W per degree above `memory_mhz` and `temperature_c`, where the curve holds; set if
  /// cross-validation favours the term.
  std::optional<Estimate> memory_w_per_mhz, temperature_w_per_c;
  double memory_mhz = 0, temperature_c = 0;  ///< means of the samples; 0: not all of them have one
  /// The clock with the least energy per work within [low_mhz, high_mhz].
  Estimate optimal_clock_mhz;
  double low_mhz = 0, high_mhz = 0;
  std::size_t samples = 0;
  /// Relative standard deviation of the samples around the curve.
  double relative_deviation = 0;
  bool voltage_measured = false;
  std::vector<std::string> notes;

  /// Modelled power in W at a core clock, and at the memory clock and temperature if they are given and have terms.
  double power(double clock_mhz, std::optional<double> memory_clock_mhz = {},
               std::optional<double> temperature = {}) const;
  /// The same where a sample was taken.
  double power(const PowerSample& s) const { return power(s.clock_mhz, s.memory_clock_mhz, s.temperature_c); }
  /// Relative standard error of the modelled power at a clock.
  double relative_error(double clock_mhz) const;
  /// Covariance of the parameters, by row: idle, dynamic, slope, ridge, cap.
  std::vector<double> covariance;
};

/// Fits the model. Does not throw for noisy or scarce data: check `usable`.
PowerModel fit_power_model(std::span<const PowerSample> samples, const PowerModelOptions& options = {});

/// A range of clocks around the optimum.
struct ClockRange {
  double low_mhz = 0, high_mhz = 0;
  /// Share of the clocks of the full range that are outside this range.
  double removed_share = 0;
};

/// The clocks within `share` (0.1: +-10 % as in Going Green) of the modelled optimum, limited to the model's range.
/// With a list of supported clocks, the range ends at such clocks, and removed_share is a share of their number; else
/// of the range's length.
ClockRange suggested_range(const PowerModel& model, double share = 0.1, std::span<const double> clocks = {});

/// The clock of `clocks` with the least modelled energy per work; clocks beyond the power cap are never chosen. The
/// optimum of the curve may lie between two clocks of which, near a ridge, one needs much more energy. nullopt if
/// `clocks` contains none.
std::optional<double> best_clock(const PowerModel& model, std::span<const double> clocks);

/// The clock among `candidates` at which another sample adds most information: where the modelled power is least
/// certain, excluding sampled clocks. nullopt if none is left.
std::optional<double> next_clock(const PowerModel& model, std::span<const PowerSample> samples,
                                 std::span<const double> candidates);

/// Selects `count` values spaced evenly over the sorted candidates, ends included.
std::vector<double> spaced_clocks(std::span<const double> candidates, std::size_t count);

/// Fits v0 (1 + b max(0, f - ridge)) to measured core voltages and returns the ridge with its 95 % interval; nullopt if
/// fewer than four samples have a voltage, or if the voltage does not rise.
std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples);

/// The ridge point from voltages alone and from powers alone, for the same samples.
struct RidgeComparison {
  std::optional<Estimate> from_voltage;
  std::optional<Estimate> from_power;  ///< as fit_power_model() finds it without voltages
};
RidgeComparison compare_ridges(std::span<const PowerSample> samples);

}  // namespace ergotune
