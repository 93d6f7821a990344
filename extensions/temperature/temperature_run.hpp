// One configuration, measured hundreds of times over the temperature of the chip: `ergotune temperature`, and Python's
// temperature().
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
  std::string configuration;  ///< a JSON object; parameters that it leaves out take their defaults
  std::size_t runs = 300, every = 20;
  double seconds = 0;        ///< s, the longest that it may take; 0: no limit
  double rest = 0;           ///< s of rest after `every` runs, in which the device cools
  std::optional<double> at;  ///< °C, to which energies are corrected
  bool dry = false;          ///< the device's coefficient is not kept for corrected_energy
  std::string csv, figure;   ///< files to write
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const SessionProgress&)> progress;
};

struct TemperatureRun {
  PreparedSession prepared;
  Configuration configuration;
  TemperatureStudy study;
  double seconds = 0;
  std::filesystem::path kept;  ///< where the coefficient is kept; empty: nowhere
};

/// Measures, writes the files that were named, and keeps the coefficient. Throws UserError, and Error where no slope
/// could be fitted.
TemperatureRun run_temperature(Problem problem, SetupOptions setup, const TemperatureOptions& options);
nlohmann::ordered_json temperature_document(const TemperatureRun& run, const TemperatureOptions& options);

}  // namespace ergotune
