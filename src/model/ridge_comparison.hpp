// Compares the ridge point from voltages alone with that from powers alone, for the same samples.
#pragma once

#include <optional>
#include <span>

#include "model/power_model.hpp"

namespace ergotune {

/// Fits v0 (1 + b max(0, f - ridge)) to measured core voltages and returns the ridge with its 95 % interval; nullopt if
/// fewer than four samples have a voltage, or if the voltage does not rise.
std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples);

struct RidgeComparison {
  std::optional<Estimate> from_voltage;
  std::optional<Estimate> from_power;  ///< as fit_power_model() finds it without voltages
};
RidgeComparison compare_ridges(std::span<const PowerSample> samples);

}  // namespace ergotune
