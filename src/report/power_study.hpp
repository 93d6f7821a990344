// Power over the core clock: the document of `ergotune model --json`, and its figure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "analysis/svg_chart.hpp"
#include "model/power_model.hpp"
#include "model/power_samples.hpp"
#include "model/ridge_comparison.hpp"

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

}  // namespace ergotune
