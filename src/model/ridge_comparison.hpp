// The ridge of the same samples as three ways see it: voltages alone, powers alone, and equation 3 as it is printed.
#pragma once

#include <optional>
#include <span>

#include "model/power_model.hpp"

namespace ergotune {

/// Equations 2 and 3 of Going Green as printed, with the threshold on a clock of the board:
///
///   P(f) = P_idle + a f v(f)^2,   v(f) = 1 for f < ridge,  b (f - ridge) for f >= ridge
///
/// v jumps to 0 at the threshold and comes back to 1 only at ridge + 1/b, so that the modelled energy has its minimum
/// at the threshold by construction. The continuous form (PowerCurve) is what fits measured boards; this is for
/// comparison.
struct PrintedModel {
  double ridge_mhz = 0;  ///< the threshold, and with it the clock of least modelled energy
  double idle_w = 0, dynamic_w_per_mhz = 0, voltage_slope_per_mhz = 0;
  /// Relative standard deviation of the samples around it.
  double relative_deviation = 0;
  double power(double clock_mhz) const;
};

/// By least squares in relative power, for every threshold among `clocks` (empty: the samples' own) that has samples on
/// both sides; nullopt for fewer than five samples.
std::optional<PrintedModel> fit_as_printed(std::span<const PowerSample> samples, std::span<const double> clocks = {});

/// v0 (1 + b max(0, f - ridge)) through measured core voltages, with the 95 % interval of the ridge; nullopt where
/// fewer than four samples have a voltage, or where it does not rise.
std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples);

struct RidgeComparison {
  std::optional<Estimate> from_voltage;
  std::optional<Estimate> from_power;  ///< as fit_power_model() finds it without the voltages
  std::optional<PrintedModel> as_printed;
};
RidgeComparison compare_ridges(std::span<const PowerSample> samples, std::span<const double> clocks = {});

}  // namespace ergotune
