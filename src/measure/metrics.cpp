#include "measure/metrics.hpp"

#include "measure/propagate.hpp"

namespace ergotune {

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
