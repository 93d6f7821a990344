// Samples of power over clock for the power model, from recordings and files (from a device:
// tune/plans/sample_clocks.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/power_model.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Samples with where they come from.
struct PowerSampling {
  std::string source;  ///< for people: "cache.json (NVIDIA RTX A4000)"
  std::string device;
  Provenance provenance = Provenance::replayed;
  std::vector<PowerSample> samples;
  /// Those that ran slower than was requested (a power cap, heat): they say where the GPU throttles, and are not
  /// fitted.
  std::vector<PowerSample> throttled;
  /// Time of a launch where it is known, in the order of the samples; NaN elsewhere.
  std::vector<double> time_s;
  /// The clocks that can be requested, where they are known: what suggested_range() snaps to.
  std::vector<double> supported_mhz;
  /// The range of clocks that were requested, up to where the GPU throttles.
  double low_mhz = 0, high_mhz = 0;
  std::vector<std::string> notes;
};

/// From a recording with a clock (recorded, or a parameter) and a power (or energy and time). Of several code
/// configurations the one recorded at the most clocks is taken, among those the one with most power: the
/// fullest load. Throws UserError when there is no clock or no power.
PowerSampling samples_of(const Recording& recording);

/// Any recording, or a CSV file with clock_mhz, power_w and, as far as they are there, power_error_w, time_s,
/// voltage_v, memory_clock_mhz, temperature_c. Throws UserError with file and line.
PowerSampling load_power_samples(const std::filesystem::path& file);

}  // namespace ergotune
