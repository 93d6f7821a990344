// What a ScoredSpace holds; shared by the files that score.
#pragma once

#include <string>
#include <vector>

#include "base/statistics.hpp"
#include "evaluate/recorded/replay.hpp"
#include "search/scoring/score.hpp"
#include "search/scoring/score_baseline.hpp"

namespace ergotune {

struct ScoredSpace::State {
  explicit State(Recording recording) : table(std::move(recording)) {}

  ReplayTable table;
  std::string name;
  std::vector<double> values;  ///< by configuration; infinity for a failure
  std::size_t failed = 0;
  bool costs_unknown = false;
  search::ScoreBaseline baseline;

  double seconds(ConfigurationIndex index) const { return costs_unknown ? 1.0 : table.seconds(index); }
  double repeat_seconds(ConfigurationIndex index) const { return costs_unknown ? 1.0 : table.run_seconds(index); }
};

}  // namespace ergotune
