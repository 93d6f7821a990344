// The ridge of the same samples by voltages alone and by powers alone.
#pragma once

#include <optional>
#include <span>

#include "model/power_model.hpp"

namespace ergotune {

/// v0 (1 + b max(0, f - ridge)) through measured core voltages, with the 95 % interval of the ridge; nullopt where
/// fewer than four samples have a voltage, or where it does not rise.
std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples);

struct RidgeComparison {
  std::optional<Estimate> from_voltage;
  std::optional<Estimate> from_power;  ///< as fit_power_model() finds it without the voltages
};
RidgeComparison compare_ridges(std::span<const PowerSample> samples);

}  // namespace ergotune
