// Power over the core clock (`ergotune model`) and power over time around the launches of one configuration (`ergotune
// trace`): measuring, documents and figures.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "analysis/svg_chart.hpp"
#include "measure/energy/power_trace.hpp"
#include "model/power_model.hpp"
#include "model/power_samples.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct PowerStudy {
  PowerSampling sampling;
  PowerModel model;
  RidgeComparison ridges;
  ClockRange range;  ///< around the clock with the least energy
};

/// `share`: half-width of the suggested range; throws UserError unless it is between 0 and 1.
PowerStudy study_power(PowerSampling sampling, PowerModel model, double share);
/// Fits the model first.
PowerStudy study_power(PowerSampling sampling, double share);

/// The least and the largest value of a condition (memory clock, temperature) of the samples; nullopt where one of them
/// has none.
std::optional<std::pair<double, double>> range_of(const PowerSampling& sampling,
                                                  std::optional<double> PowerSample::*condition);
nlohmann::ordered_json power_document(const PowerStudy& study);
/// Requires at least one sample.
Chart power_chart(const PowerStudy& study);
/// "recorded" for samples that were measured earlier, "simulated" for simulated ones; used in all outputs.
std::string origin_of(Provenance provenance);

struct TraceRequest {
  std::string configuration;                  ///< JSON; omitted parameters take their defaults
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
