// Measures one configuration hundreds of times while the temperature of the chip changes: `ergotune temperature`, and
// Python's temperature().
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/svg_chart.hpp"
#include "temperature/temperature_study.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

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
