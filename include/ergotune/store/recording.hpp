// Recorded results free of their source: a stored session, a Kernel Tuner cache, a T4 file or CSV, all in SI units.
// What replay, scoring, analysis and the model read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/measure/measurement.hpp"
#include "ergotune/problem/problem.hpp"

namespace ergotune {

struct Recording {
  std::string name;            ///< problem or kernel name
  std::string device;
  std::filesystem::path file;
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;  ///< from a T1 file beside it or the stored problem; empty when unknown
  bool restrictions_known = false;
  std::vector<Configuration> configurations;
  std::vector<Measurement> measurements;  ///< same order and size
  std::string objective = "time";
  std::vector<Metric> metrics;            ///< where the stored problem has them
  std::vector<std::string> warnings;      ///< "cut off after 898 entries; the cut line is lost"
};

/// Reads any of them, told apart by content (gzip or not). Kernel Tuner caches: times in ms become s, lists of
/// readings become values with standard errors (nvml_energys, ps_energy -> energy), clocks in MHz become core_clock
/// in Hz, error strings become statuses. Throws UserError.
Recording load_recording(const std::filesystem::path& file);

}  // namespace ergotune
