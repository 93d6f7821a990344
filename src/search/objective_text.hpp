// The text of an objective, taken apart. Expressions stay expressions; "best(time)" becomes the name
// "best.time".
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"

namespace ergotune::search {

/// One side-by-side comparison of a condition, turned so that it holds when left <= right (or left < right).
struct Comparison {
  Expression left, right;
  bool strict = false;
  std::string text;
};

struct ObjectiveTerm {
  Expression expression;
  Direction direction = Direction::minimise;
  bool has_direction = false;  ///< as written
  /// Lexicographic: relative distance to the level's best that counts as equal.
  double tolerance = 0.01;
};

struct ObjectiveText {
  enum class Form { single, pareto, lexicographic } form = Form::single;
  std::vector<ObjectiveTerm> terms;
  std::vector<Comparison> conditions;
  /// Names whose best() is their largest value.
  std::vector<std::string> best_is_largest;
};

/// The name under which best(NAME) is looked up.
inline constexpr const char* kBestPrefix = "best.";

/// Throws UserError with the place of the fault.
ObjectiveText parse_objective_text(const ObjectiveSpec& spec);

}  // namespace ergotune::search
