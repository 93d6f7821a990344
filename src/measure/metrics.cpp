#include "measure/metrics.hpp"

#include <cmath>

#include "base/statistics.hpp"

namespace ergotune {

std::optional<Uncertain> propagate(const Expression& expression, std::vector<UncertainInput>& inputs) {
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (const UncertainInput& input : inputs)
      if (input.name == name) return &input.value;
    return nullptr;
  };
  try {
    Uncertain result{expression.evaluate_real(scope)};
    if (!std::isfinite(result.value)) return std::nullopt;
    std::vector<ErrorEstimate> terms;
    for (UncertainInput& input : inputs) {
      if (!(input.standard_error > 0) || !std::isfinite(input.standard_error)) continue;
      const double centre = input.value.as_real();
      input.value = centre + input.standard_error;
      const double above = expression.evaluate_real(scope);
      input.value = centre - input.standard_error;
      const double below = expression.evaluate_real(scope);
      input.value = centre;
      terms.push_back({0.5 * std::abs(above - below), input.degrees});
    }
    const ErrorEstimate error = combined_error(terms);
    if (std::isfinite(error.standard_error))
      result.standard_error = error.standard_error, result.degrees = error.degrees;
    return result;
  } catch (const Error&) {
    // division by zero or a name without a value: the expression has no value here
    return std::nullopt;
  }
}

void evaluate_metrics(Measurement& measurement, const std::vector<Metric>& metrics,
                      const std::vector<Parameter>& parameters, const Configuration& configuration,
                      const Constants& constants) {
  measurement.metrics.clear();
  measurement.metric_errors.clear();
  measurement.metric_degrees.clear();
  for (const Metric& metric : metrics) {
    std::vector<UncertainInput> inputs;
    bool complete = true;
    for (const std::string& name : metric.expression.names()) {
      UncertainInput input{name, Value()};
      // quantities and earlier metrics take precedence over parameters and constants of the same name
      if (const auto value = measurement.value(name)) {
        input.value = *value;
        input.standard_error = measurement.standard_error(name);
        input.degrees = measurement.degrees(name);
      } else if (const auto constant = constants.find(name); constant != constants.end()) {
        input.value = constant->second;
      } else {
        complete = false;
        for (std::size_t i = 0; i < parameters.size() && i < configuration.size(); ++i) {
          if (parameters[i].name != name) continue;
          input.value = configuration[i];
          complete = true;
        }
        if (!complete) break;
      }
      inputs.push_back(std::move(input));
    }
    if (!complete) continue;
    if (const auto result = propagate(metric.expression, inputs)) {
      measurement.metrics[metric.name] = result->value;
      if (result->standard_error > 0) measurement.metric_errors[metric.name] = result->standard_error;
      if (result->degrees > 0) measurement.metric_degrees[metric.name] = result->degrees;
    }
  }
}

}  // namespace ergotune
