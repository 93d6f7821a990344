// What a configuration needs at one temperature and at another: the same one measured hundreds of times (Frericks,
// Section 4.3), and straight lines through its energy, power, time and clock over the temperature of the chip.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

/// Change of a quantity with temperature, by least squares, in its SI unit.
struct TemperatureSlope {
  std::size_t count = 0;
  double mean = 0;              ///< of the quantity
  double mean_temperature = 0;  ///< °C
  double slope = 0;             ///< per °C
  double standard_error = 0;    ///< of the slope
  double low = 0, high = 0;     ///< 95 % interval of the slope
  double deviation = 0;         ///< of the runs around the line
  /// Whether the interval leaves out no change at all.
  bool significant() const { return low > 0 || high < 0; }
};

/// The slope of `values` over `celsius`. Runs that follow each other are alike, so the interval is made of the
/// residuals with their correlation (Newey and West, Econometrica 55, 1987, with lags up to the cube root of the count)
/// and Student's t. `resolution` is the step (°C) in which the chip tells its temperature: both ends of the range are
/// off by up to that. nullopt where there are fewer than 8 runs, or where the temperature never changed.
std::optional<TemperatureSlope> slope_over_temperature(std::span<const double> celsius, std::span<const double> values,
                                                       double resolution = 0);

struct TemperatureStudy {
  /// The runs that worked, in the order in which they were measured; each has a temperature.
  std::vector<Measurement> runs;
  std::size_t failed = 0;
  double coolest = 0, hottest = 0;  ///< °C, of the runs' means
  /// By quantity: energy, power, time, core_clock; those that were measured in all runs.
  std::map<std::string, TemperatureSlope> slopes;
  /// A power limit held the GPU in some of the runs: power then cannot show what the temperature does.
  bool capped = false;
  /// Why the change of power is not that of the GPU, and not to be kept; empty where it is.
  std::string why_not;
};

TemperatureStudy study_temperature(const std::vector<Measurement>& runs);

/// Energy of a run (J) as it would have been at `celsius` by the study's slope: modelled.
double energy_at(const TemperatureStudy& study, const Measurement& run, double celsius);
/// Standard deviation over the mean of the runs' energies: as measured, and corrected to one temperature.
struct EnergyScatter {
  double measured = 0, corrected = 0;
};
EnergyScatter scatter_of(const TemperatureStudy& study, double celsius);

}  // namespace ergotune
