// The part of `ergotune analyse` that says what goes with speed and with efficiency.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/influence.hpp"

namespace ergotune::cli {

/// Everything that analysis/influence.hpp makes of a recording.
struct InfluenceAnalysis {
  std::vector<Influence> influences;
  std::vector<Level> levels;
  std::vector<WeightedBest> sweep;
  std::optional<Roofline> roofline;
  std::vector<std::string> words;
};
InfluenceAnalysis analyse_influence(const Recording& recording, const Tradeoff& tradeoff,
                                    const std::vector<std::string>& peaks);

/// Adds "influences", "occupancy_levels", "weighted", "roofline" and "words".
void add_to_document(nlohmann::ordered_json& document, const Recording& recording, const Tradeoff& tradeoff,
                     const InfluenceAnalysis& analysis);
void print_influence(const Recording& recording, const Tradeoff& tradeoff, const InfluenceAnalysis& analysis);
/// Writes the figures, and influences.csv, into a folder, which is made; tells how many. Throws UserError where that
/// cannot be.
std::size_t write_figures(const std::string& folder, const Recording& recording, const Tradeoff& tradeoff,
                          const InfluenceAnalysis& analysis, std::vector<std::string> metrics);

}  // namespace ergotune::cli
