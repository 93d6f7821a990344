// What a search improves: metrics and the objective as the user wrote it.
#pragma once

#include <optional>
#include <string>

#include "ergotune/space.hpp"

namespace ergotune {

/// A named expression over quantities, parameters and constants: gflops = 2*n**3/time/1e9.
struct Metric {
  std::string name;
  Expression expression;
  std::string unit;
};

enum class Direction { minimise, maximise };

/// The objective as the user wrote it, for example "time", "energy", "max gflops_per_watt", "energy subject to time <=
/// 1.1 * best(time)", "0.3*time + 0.7*energy", "pareto(time, energy)" or "lexicographic(time, energy)".
/// search/objective.hpp interprets it.
struct ObjectiveSpec {
  std::string text = "time";
  std::optional<Direction> direction;
  SourcePlace place;
  /// Compares the meaning only, not `place`.
  friend bool operator==(const ObjectiveSpec& a, const ObjectiveSpec& b) {
    return a.text == b.text && a.direction == b.direction;
  }
};

}  // namespace ergotune
