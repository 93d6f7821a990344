// Raw traces as CSV, so that estimators can be judged again without the GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune::bench {

enum class RunKind { measurement, reference, naive };
std::string to_string(RunKind kind);

/// One run of the experiment.
struct Run {
  int id = 0;
  std::string kernel;
  RunKind kind = RunKind::measurement;
  double started = 0;  ///< host time
  EnergyTrace trace;
  // naive: what the method itself saw
  double naive_power = 0, naive_time = 0;
};

/// Writes sensors.csv, readings.csv, marks.csv, GPU.csv, runs.csv into a folder.
void write_traces(const std::filesystem::path& folder, const std::vector<Run>& runs);
std::vector<Run> read_traces(const std::filesystem::path& folder);

}  // namespace ergotune::bench
