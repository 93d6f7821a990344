#include "measure/propagate.hpp"

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

}  // namespace ergotune
