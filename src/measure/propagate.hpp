// The value of an expression of uncertain inputs, with its standard error to first order.
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
  double degrees = 0;  ///< of freedom (Quantity::degrees)
};

struct Uncertain {
  double value = 0;
  double standard_error = 0;
  double degrees = 0;
};

/// nullopt when the expression cannot be evaluated or is not finite. Inputs count as independent; each slope
/// is the central difference over one standard error.
std::optional<Uncertain> propagate(const Expression& expression, std::vector<UncertainInput>& inputs);

}  // namespace ergotune
