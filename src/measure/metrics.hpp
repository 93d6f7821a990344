// Evaluation of metrics, which are named expressions over quantities, parameters and constants. Combines
// several measurements of one configuration.
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

/// Returns the mean of independent measurements of one configuration (confirmation repeats). Each quantity and metric
/// is averaged; its standard error is the larger of the scatter between the measurements and the error derived from
/// their standard errors. Properties of the compiled code keep their value. A wrong result is returned unchanged.
/// Measurements with other failures are left out with a warning, since the configuration worked before; one of them is
/// returned if no measurement succeeded. `rounds` must not be empty.
Measurement combine(const std::vector<Measurement>& rounds);

}  // namespace ergotune
