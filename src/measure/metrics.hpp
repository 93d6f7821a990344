// Metrics: named expressions over a measurement, the configuration and the constants.
#pragma once

#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

/// Fills measurement.metrics by evaluating each metric over its quantities, earlier metrics, the
/// configuration and the constants (the first of these that has a name counts); a metric that cannot be
/// evaluated (missing quantity, division by zero) is left out. Errors propagate to first order.
void evaluate_metrics(Measurement& measurement, const std::vector<Metric>& metrics,
                      const std::vector<Parameter>& parameters, const Configuration& configuration,
                      const Constants& constants);

}  // namespace ergotune
