// Parses the text of an objective into expressions; "best(time)" becomes the name "best.time".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/space.hpp"

namespace ergotune::search {

/// A comparison in a condition, rearranged so that it holds if left <= right (or left < right).
struct Comparison {
  Expression left, right;
  bool strict = false;
  std::string text;
};

struct ObjectiveTerm {
  Expression expression;
  Direction direction = Direction::minimise;
  bool has_direction = false;  ///< as written
  /// Lexicographic: relative distance to the best of this level within which values count as equal.
  double tolerance = 0.01;
};

struct ObjectiveText {
  enum class Form { single, pareto, lexicographic } form = Form::single;
  std::vector<ObjectiveTerm> terms;
  std::vector<Comparison> conditions;
  /// Names whose best() is their largest value.
  std::vector<std::string> best_is_largest;
};

/// Prefix of the name that replaces best(NAME).
inline constexpr const char* kBestPrefix = "best.";

/// Throws UserError with the place of the error.
ObjectiveText parse_objective_text(const ObjectiveSpec& spec);

/// "s" for "time", "-time" and "2 * time", "J s" for "energy * time", "J/s" for "energy / time"; empty if the
/// expression has no unit ("log(time)", "0.3 * time + 0.7 * energy") or it is unknown.
std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

/// The direction in which an expression improves: down for times, energies, powers and their sums and products; up for
/// values per time, energy or power ("GB/s", "GFLOP/s/W"). nullopt if neither units nor quantities determine it.
std::optional<Direction> direction_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

}  // namespace ergotune::search
