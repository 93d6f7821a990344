#include "measure/propagate.hpp"

#include <cmath>

namespace ergotune {

std::optional<Uncertain> propagate(const Expression& expression, std::vector<UncertainInput>& inputs) {
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (const UncertainInput& input : inputs)
      if (input.name == name) return &input.value;
    return nullptr;
  };
  try {
    Uncertain result{expression.evaluate_real(scope), 0};
    if (!std::isfinite(result.value)) return std::nullopt;
    double variance = 0;
    for (UncertainInput& input : inputs) {
      if (!(input.standard_error > 0) || !std::isfinite(input.standard_error)) continue;
      const double centre = input.value.as_real();
      input.value = centre + input.standard_error;
      const double above = expression.evaluate_real(scope);
      input.value = centre - input.standard_error;
      const double below = expression.evaluate_real(scope);
      input.value = centre;
      variance += 0.25 * (above - below) * (above - below);
    }
    if (std::isfinite(variance)) result.standard_error = std::sqrt(variance);
    return result;
  } catch (const Error&) {
    // a division by zero or a name without a value: this measurement has no such number
    return std::nullopt;
  }
}

}  // namespace ergotune
