// The text of an objective, taken apart. Expressions stay expressions; "best(time)" becomes the name
// "best.time".
#pragma once

#include <optional>
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

/// "s" for "time", "-time" and "2 * time", "J s" for "energy * time", "J/s" for "energy / time"; empty where there is
/// none
/// ("log(time)", "0.3 * time + 0.7 * energy") or is unknown.
std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

/// Which way is better: less of times, energies, powers and what is a sum or product of them; more of what is per time,
/// energy or power ("GB/s", "GFLOP/s/W"). nullopt where neither units nor the quantities' own directions say it.
std::optional<Direction> direction_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

}  // namespace ergotune::search
