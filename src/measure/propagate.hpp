// Error propagation through an expression, to first order.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace ergotune
