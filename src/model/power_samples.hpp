// Samples of power over clock for the power model, from recordings and files. Samples from a device:
// tune/plans/sample_clocks.hpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/power_model.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Samples and their source.
struct PowerSampling {
  std::string source;  ///< for people: "cache.json (NVIDIA RTX A4000)"
  std::string device;
  Provenance provenance = Provenance::replayed;
  std::vector<PowerSample> samples;
  /// Samples that ran below the requested clock (a power cap, heat). They show where the GPU throttles and are not
  /// fitted.
  std::vector<PowerSample> throttled;
  /// Time of a launch, s, in the order of the samples; NaN: unknown.
  std::vector<double> time_s;
  /// The supported clocks, if known; suggested_range() chooses from them.
  std::vector<double> supported_mhz;
  /// The range of requested clocks, up to the clock at which the GPU throttles.
  double low_mhz = 0, high_mhz = 0;
  std::vector<std::string> notes;
};

/// Samples from a recording with a clock (recorded, or a parameter) and power (or energy and time). Of several code
/// configurations, uses the one recorded at most clocks; among those, the one with the highest power, which loads the
/// device most. Throws UserError if there is no clock or no power.
PowerSampling samples_of(const Recording& recording);

/// Samples from any recording, or from a CSV file with the columns clock_mhz, power_w and optionally power_error_w,
/// time_s, voltage_v, memory_clock_mhz, temperature_c. Throws UserError with file and line.
PowerSampling load_power_samples(const std::filesystem::path& file);

}  // namespace ergotune
