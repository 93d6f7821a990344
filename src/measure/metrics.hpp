// Evaluation of metrics, which are named expressions over quantities, parameters and constants.
#pragma once

#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

/// Fills measurement.metrics. Names refer to quantities, earlier metrics, parameters and constants, in this order of
/// precedence. A metric that cannot be evaluated (missing quantity, division by zero) is left out. Errors are
/// propagated to first order.
void evaluate_metrics(Measurement& measurement, const std::vector<Metric>& metrics,
                      const std::vector<Parameter>& parameters, const Configuration& configuration,
                      const Constants& constants);

}  // namespace ergotune
