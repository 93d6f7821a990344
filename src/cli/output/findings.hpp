// What a search has found out besides its winner, in words: the same for tune and show.
#pragma once

#include <optional>
#include <string>

#include "search/importance.hpp"
#include "search/ranking.hpp"

namespace ergotune::cli {

/// How often the winner was measured again, and how sure it is.
std::string certainty_text(int rounds, double probability_best, std::optional<double> expected_loss);
/// Why a result that reads better than the confirmed winner stands behind it.
std::string unconfirmed_text(const Unconfirmed& result, const Repeats& repeats, const std::string& unit);
/// That the search's values changed when they were measured again; empty where they repeated within 5 %.
std::string repeats_text(const Repeats& repeats);

/// What the parameters were seen to do; nothing where nothing is known.
void print_importance(const std::vector<Parameter>& parameters, const Importance& importance);

}  // namespace ergotune::cli
