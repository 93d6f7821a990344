#include "measure/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/statistics.hpp"
#include "problem/tables/quantity.hpp"

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

namespace {

struct Mean {
  double value;
  ErrorEstimate error;
};

// The scatter between measurements includes their own errors; the larger of both is used.
Mean mean_of(const std::vector<double>& values, const std::vector<ErrorEstimate>& errors) {
  const auto count = static_cast<double>(values.size());
  ErrorEstimate own = combined_error(errors);
  own.standard_error /= count;
  const double scatter = std::sqrt(variance(values) / count);
  // `own` is NaN where it is unknown
  return {mean(values), own.standard_error >= scatter ? own : ErrorEstimate{scatter, count - 1}};
}

void combine_quantities(const std::vector<Measurement>& rounds, Measurement& combined) {
  for (auto& [name, quantity] : combined.quantities) {
    const QuantityInfo* info = quantity_info(name);
    if (info && !info->averaged()) continue;
    std::vector<double> values;
    std::vector<ErrorEstimate> errors;
    std::int64_t n = 0;
    for (const Measurement& round : rounds) {
      const auto same = round.quantities.find(name);
      if (same == round.quantities.end()) continue;
      values.push_back(same->second.value);
      errors.push_back({same->second.standard_error, same->second.degrees});
      n += same->second.n;
    }
    const Mean found = mean_of(values, errors);
    quantity.value = found.value;
    quantity.standard_error = found.error.standard_error;
    quantity.degrees = found.error.degrees;
    quantity.n = n;
  }
}

void combine_metrics(const std::vector<Measurement>& rounds, Measurement& combined) {
  combined.metric_errors.clear();
  combined.metric_degrees.clear();
  for (auto& [name, value] : combined.metrics) {
    std::vector<double> values;
    std::vector<ErrorEstimate> errors;
    for (const Measurement& round : rounds) {
      if (!round.metrics.contains(name)) continue;
      values.push_back(round.metrics.at(name));
      errors.push_back({round.standard_error(name), round.degrees(name)});
    }
    const Mean found = mean_of(values, errors);
    value = found.value;
    if (found.error.standard_error > 0) combined.metric_errors[name] = found.error.standard_error;
    if (found.error.degrees > 0) combined.metric_degrees[name] = found.error.degrees;
  }
}

bool counts(const Measurement& round) { return usable(round.status) || round.status == Status::wrong_result; }

/// Leaves out failed measurements unless all failed.
std::vector<Measurement> measured_ones(const std::vector<Measurement>& rounds) {
  std::vector<Measurement> list;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(list), counts);
  return list.empty() ? rounds : list;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

}  // namespace

Measurement combine(const std::vector<Measurement>& all) {
  const std::vector<Measurement> rounds = measured_ones(all);
  for (const Measurement& round : rounds) {
    if (!usable(round.status)) return round;
  }
  Measurement combined = rounds.front();
  for (const Measurement& round : rounds) {
    combined.quantities.insert(round.quantities.begin(), round.quantities.end());
    combined.metrics.insert(round.metrics.begin(), round.metrics.end());
  }
  combine_quantities(rounds, combined);
  combine_metrics(rounds, combined);
  combined.times.clear();
  for (const Measurement& round : rounds) {
    combined.times.insert(combined.times.end(), round.times.begin(), round.times.end());
    if (round.status == Status::not_converged) combined.status = round.status;
    combined.finished_at = std::max(combined.finished_at, round.finished_at);
    for (const std::string& warning : round.warnings) add_once(combined.warnings, warning);
  }
  for (const Measurement& round : all) {
    if (!counts(round)) add_once(combined.warnings, "a round is left out: " + round.message);
  }
  return combined;
}

}  // namespace ergotune
