// Power over the core clock as a result: the document of `ergotune model --json`, and its figure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/svg_chart.hpp"
#include "model/power_model.hpp"
#include "model/power_samples.hpp"
#include "model/ridge_comparison.hpp"

namespace ergotune {

struct PowerStudy {
  PowerSampling sampling;
  PowerModel model;
  RidgeComparison ridges;
  ClockRange range;  ///< where the model is usable
};

/// `share`: half-width of the suggested range; throws UserError where it is not between 0 and 1.
PowerStudy study_power(PowerSampling sampling, PowerModel model, double share);
/// Of samples that are fitted first.
PowerStudy study_power(PowerSampling sampling, double share);

nlohmann::ordered_json power_document(const PowerStudy& study);
/// Needs at least one sample.
Chart power_chart(const PowerStudy& study);
/// "recorded" where samples were measured once by someone, "simulated" where they are, in every output.
std::string origin_of(Provenance provenance);

}  // namespace ergotune
