// Scores of strategies as one self-contained HTML page.
#pragma once

#include <string>
#include <vector>

#include "search/scoring/score.hpp"

namespace ergotune {

/// Scores as a table, convergence curves over all spaces and for each as SVG.
std::string score_page(const std::vector<StrategyScore>& scores, const std::vector<ScoredSpace>& spaces);

}  // namespace ergotune
