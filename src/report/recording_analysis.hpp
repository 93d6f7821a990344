// Analyses a recording's trade-off between time and energy, and how difficult it is to search, for `ergotune analyse`
// and Python's analyse().
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/centrality.hpp"
#include "analysis/influence.hpp"
#include "analysis/svg_chart.hpp"
#include "analysis/tradeoff.hpp"

namespace ergotune {

struct AnalysisOptions {
  std::vector<std::string> peaks;         ///< recordings of kernels that reach the device's peaks, for the rooflines
  std::string neighbourhood = "hamming";  ///< or adjacent, strictly_adjacent
  bool centrality = true;                 ///< compute how difficult the space is to search
};

struct RecordingAnalysis {
  Recording recording;
  Tradeoff tradeoff;
  std::vector<Influence> influences;
  std::vector<Level> levels;
  std::vector<WeightedBest> sweep;
  std::optional<Roofline> roofline;
  std::vector<std::string> findings;
  std::string neighbourhood;
  std::vector<NamedCentrality> centrality;
  std::vector<std::string> warnings;  ///< of the recordings that were loaded
};

/// Throws UserError if no configuration has a time, and for peaks without bytes of device memory.
RecordingAnalysis analyse_recording(Recording recording, const AnalysisOptions& options);
nlohmann::ordered_json analysis_document(const RecordingAnalysis& analysis);
/// Efficiency over speed, means by occupancy and rooflines, as far as they were recorded. Throws UserError if there is
/// none.
std::vector<Chart> analysis_charts(const RecordingAnalysis& analysis);

}  // namespace ergotune
