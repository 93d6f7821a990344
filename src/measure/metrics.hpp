// Evaluation of metrics, which are named expressions over quantities, parameters and constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct UncertainInput {
  std::string name;
  Value value;
  double standard_error = 0;
  double degrees = 0;  ///< degrees of freedom of the standard error (Quantity::degrees)
};

struct Uncertain {
  double value = 0;
  double standard_error = 0;
  double degrees = 0;
};

/// Returns nullopt if the expression cannot be evaluated or is not finite. Inputs are treated as independent; partial
/// derivatives are central differences over one standard error.
std::optional<Uncertain> propagate(const Expression& expression, std::vector<UncertainInput>& inputs);

/// Fills measurement.metrics. Names refer to quantities, earlier metrics, parameters and constants, in this order of
/// precedence. A metric that cannot be evaluated (missing quantity, division by zero) is left out. Errors are
/// propagated to first order.
void evaluate_metrics(Measurement& measurement, const std::vector<Metric>& metrics,
                      const std::vector<Parameter>& parameters, const Configuration& configuration,
                      const Constants& constants);

}  // namespace ergotune
