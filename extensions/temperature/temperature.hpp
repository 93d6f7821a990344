// The dependence of a configuration's energy, power, time and clock on the temperature of the chip: hundreds of runs
// (Frericks, Section 4.3), and a linear fit for each quantity; `ergotune temperature` and Python's temperature().
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "ergotune/result.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

/// Change of a quantity with temperature, by least squares, in the quantity's SI unit.
struct TemperatureSlope {
  std::size_t count = 0;
  double mean = 0;              ///< of the quantity
  double mean_temperature = 0;  ///< °C
  double slope = 0;             ///< per °C
  double standard_error = 0;    ///< of the slope
  double low = 0, high = 0;     ///< 95 % interval of the slope
  double deviation = 0;         ///< standard deviation of the runs around the line
  /// Whether the interval excludes 0.
  bool significant() const { return low > 0 || high < 0; }
};

/// Fits the slope of `values` over `celsius`. Consecutive runs are correlated, so that the interval uses the residuals
/// with their correlation (Newey and West, Econometrica 55, 1987, with lags up to the cube root of the count) and
/// Student's t. `resolution`: step (°C) in which the chip reports its temperature; both ends of the range may be off by
/// it. nullopt for fewer than 8 runs, or if the temperature never changed.
std::optional<TemperatureSlope> slope_over_temperature(std::span<const double> celsius, std::span<const double> values,
                                                       double resolution = 0);

struct TemperatureStudy {
  /// The usable runs, in the order of measurement; each has a temperature.
  std::vector<Measurement> runs;
  std::size_t failed = 0;
  double coolest = 0, hottest = 0;  ///< °C, of the runs' means
  /// By quantity: energy, power, time, core_clock, as far as all runs have them.
  std::map<std::string, TemperatureSlope> slopes;
  /// A power limit reduced the clock in some of the runs, so that power does not show the effect of temperature.
  bool capped = false;
  /// Why the change of power is not a property of the GPU and must not be stored; empty if it is.
  std::string why_not;
};

TemperatureStudy study_temperature(const std::vector<Measurement>& runs);

/// Energy of a run (J) corrected to `celsius` by the study's slope. Its provenance is modelled.
double energy_at(const TemperatureStudy& study, const Measurement& run, double celsius);
/// Standard deviation of the runs' energies relative to their mean: as measured, and corrected to one temperature.
struct EnergyScatter {
  double measured = 0, corrected = 0;
};
EnergyScatter scatter_of(const TemperatureStudy& study, double celsius);

struct TemperatureOptions {
  std::string configuration;  ///< a JSON object; omitted parameters take their defaults
  std::size_t runs = 300, every = 20;
  double seconds = 0;        ///< longest duration, s; 0: no limit
  double rest = 0;           ///< s of rest after `every` runs, during which the device cools
  std::optional<double> at;  ///< °C to which energies are corrected
  bool dry = false;          ///< do not store the device's coefficient for corrected_energy
  std::string csv, figure;   ///< files to write
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const SessionProgress&)> progress;
};

struct TemperatureRun {
  PreparedSession prepared;
  Configuration configuration;
  TemperatureStudy study;
  double seconds = 0;
  std::filesystem::path kept;  ///< file in which the coefficient was stored; empty: not stored
};

/// Measures, writes the requested files, and stores the coefficient. Throws UserError for mistakes of the user, and
/// Error if no slope could be fitted.
TemperatureRun run_temperature(Problem problem, SetupOptions setup, const TemperatureOptions& options);
nlohmann::ordered_json temperature_document(const TemperatureRun& run, const TemperatureOptions& options);

}  // namespace ergotune
