// The table: errors of the measurements, and of the naive method, against references taken in between.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "trace_files.hpp"

namespace ergotune::bench {

struct VerdictOptions {
  EnergyOptions energy;
  double budget = 1.0;          ///< s of a measurement's stream that may be used
  double reference_skip = 2.0;  ///< s at the start of a reference that are left out
  bool settle_again = true;     ///< find the settled point from the trace instead of taking the recorded one
};

/// Judges the runs; prints the table on standard error and returns everything as JSON.
nlohmann::ordered_json judge(const std::vector<Run>& runs, const VerdictOptions& options);

}  // namespace ergotune::bench
