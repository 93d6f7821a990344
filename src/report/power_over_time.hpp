// Power over time around the launches of one configuration: the recording, the document of `ergotune trace --json`, and
// a figure.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/svg_chart.hpp"
#include "measure/energy/power_trace.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct TraceRequest {
  std::string configuration;                  ///< JSON; omitted parameters take their defaults
  std::string problem_file;                   ///< for messages
  std::filesystem::path csv;                  ///< file for all values; empty: none
  double before = 1, seconds = 3, after = 2;  ///< s recorded before, during and after the launches
};

struct RecordedTrace {
  PreparedSession prepared;
  Configuration configuration;
  Measurement measurement;
  std::optional<PowerTrace> trace;  ///< nullopt: the configuration failed
};

/// Measures one configuration with the observer `trace`. Throws UserError if the device does not exist, Error when
/// interrupted.
RecordedTrace record_trace(ProblemFile problem, SetupOptions setup, const TraceRequest& request);

// Both require RecordedTrace::trace to be set.
nlohmann::ordered_json trace_document(const RecordedTrace& recorded);
Chart trace_chart(const RecordedTrace& recorded);

}  // namespace ergotune
