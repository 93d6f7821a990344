// Energy per launch of a kernel that the GPU's power limit slows down.
#pragma once

#include <optional>

#include "measure/energy/energy.hpp"

namespace ergotune {

/// What a kernel does at the power limit in the long run.
struct CappedEstimate {
  double energy = 0;          ///< J per launch
  double seconds = 0;         ///< per launch
  double relative_error = 0;  ///< standard error of both over their values
  double degrees = 0;         ///< of freedom of that error
  double elasticity = 0;      ///< d ln(power) / d ln(launch rate)
  std::int64_t n = 0;         ///< readings used
  std::string sensor;
};

/// The power limit in W that held the clock down for most of the span; nullopt where none did.
std::optional<double> binding_power_limit(const EnergyTrace& trace, TimeSpan span);

/// A power-capped GPU hunts: it runs too fast until its average of about a second exceeds the limit, then
/// too slow, and settles after several seconds. A short window sees some part of that swing, so its mean is
/// off by some per cent and scatters by more. Power as a function of the launch rate does not swing: ln P = a
/// + e ln r, least squares over readings, with the elasticity e known beforehand to be about 2.5 +- 1 (P ~ f
/// V(f)^2 near the top of the clock range). Where that line meets the limit is the rate at which the GPU
/// settles; energy per launch is the limit over that rate. Where the power does not swing as far as the limit nothing
/// hunts, and what was measured is what goes on: nullopt, as when a trace has fewer than four usable readings or its
/// power is far from the limit.
std::optional<CappedEstimate> estimate_capped(const SensorTrace& sensor, TimeSpan span, const LaunchAxis& axis,
                                              double limit_watts);

}  // namespace ergotune
