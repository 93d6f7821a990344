// What a search has found out besides its winner, in words: the same for tune and show.
#pragma once

#include <optional>
#include <string>

#include "ergotune/search/importance.hpp"

namespace ergotune::cli {

/// How often the winner was measured again, and how sure it is.
std::string certainty_text(int rounds, double probability_best, std::optional<double> expected_loss);

/// What the parameters were seen to do; nothing where nothing is known.
void print_importance(const std::vector<Parameter>& parameters, const Importance& importance);

}  // namespace ergotune::cli
