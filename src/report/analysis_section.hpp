// The part of the report's document that src/analysis fills.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "store/formats/recording.hpp"

namespace ergotune {

struct AnalysisContext {
  /// The row of the problem's default configuration, where it was recorded.
  std::optional<std::size_t> default_row;
  /// Configurations that the space has; 0 where unknown.
  std::uint64_t space = 0;
};

/// Speed against efficiency with the convex hull and the two lines of Anzt et al. (2015), what correlates
/// with either, and how hard the recorded space is for local search. Members that a recording cannot fill are
/// absent: without energy there is no hull, and where only a part of the space was recorded nothing is said
/// of its local minima; with fewer than ten configurations there is nothing to analyse, and the whole is
/// null.
nlohmann::ordered_json analysis_section(const Recording& recording, const AnalysisContext& context);

}  // namespace ergotune
