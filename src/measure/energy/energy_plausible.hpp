// What plain means of readings get wrong: impossible readings, the uncertainty that a calibration leaves, and kernels
// that the power limit slows down, now or later.
#pragma once

#include <optional>
#include <string>

#include "measure/energy/energy.hpp"

namespace ergotune {

/// Returns why a power is impossible for such a GPU ("it reads 4.29e+06 W, far above any limit of its GPU"); empty if
/// it is possible.
std::string why_implausible(const SensorInfo& info, double watts);

/// True if all readings are numbers and, for a power sensor, possible for its GPU. (Increments of counters are checked
/// where they are computed.)
bool plausible(const SensorTrace& trace);
/// Removes implausible readings. If they are more than a tenth, returns the reason for one of them, else an empty
/// string.
std::string drop_implausible(SensorTrace& trace);

/// Returns the relative standard deviation at a power in W that results from the uncertainty of gain and offset.
double calibration_error(const SensorInfo& info, double watts);

/// Long-term behaviour of a kernel at the power limit.
struct CappedEstimate {
  double energy = 0;          ///< J per launch
  double seconds = 0;         ///< per launch
  double relative_error = 0;  ///< standard error of both over their values
  double degrees = 0;         ///< degrees of freedom of relative_error
  double elasticity = 0;      ///< d ln(power) / d ln(launch rate)
  std::int64_t n = 0;         ///< readings used
  std::string sensor;
};

/// Returns the enforced power limit in W at the end of the span; nullopt if it is unknown.
std::optional<double> enforced_power_limit(const EnergyTrace& trace, TimeSpan span);
/// Returns the power limit in W that reduced the clock during most of the span; nullopt if none did.
std::optional<double> binding_power_limit(const EnergyTrace& trace, TimeSpan span);

/// A power-capped GPU oscillates: it runs too fast until its average over about a second exceeds the limit, then too
/// slow, and settles after several seconds. A short window covers only a part of the oscillation, so that its mean is
/// off by some per cent and scatters by more. Power as a function of the launch rate does not oscillate: ln P = a + e
/// ln r, least squares over readings, with prior knowledge that the elasticity e is about 2.5 +- 1 (P ~ f V(f)^2 near
/// the top of the clock range). The line reaches the limit at the rate at which the GPU settles; energy per launch is
/// the limit divided by that rate. Returns nullopt if the power does not reach the limit (then there is no oscillation
/// and the plain mean is correct), if there are fewer than four usable readings, and if the power is far from the
/// limit.
std::optional<CappedEstimate> estimate_capped(const SensorTrace& sensor, TimeSpan span, const LaunchAxis& axis,
                                              double limit_watts);

/// Energy of long runs. A GPU enforces its limit late: an H200 runs for 0.9 s at 730 to 780 W before its limit of 700 W
/// reduces the clock (docs/measurements/gpu-2026-11-28.md). Over seconds its power is the limit, and a launch takes (P
/// / limit)^s times as long, where s is 0 for a kernel that the memory limits (0.0 to 0.1 in traces of two kernels) and
/// 1/e = 0.4 +- 0.1 for one that the core clock limits: s is taken as uniform over [0, 0.5].
struct LongRun {
  double energy = 0;          ///< J per launch
  double relative_error = 0;  ///< standard deviation that s leaves
};
/// `watts`: the measured power. Returns nullopt if it is not above the limit, or so far above it that it is of more
/// than the GPU.
std::optional<LongRun> estimate_long_run(const SlopeEstimate& watts, double seconds_per_launch, double limit_watts);

}  // namespace ergotune
