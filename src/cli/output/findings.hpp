// What a search has found out besides its winner, in words: the same for tune and show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "search/importance.hpp"
#include "search/ranking.hpp"
#include "tune/session/session.hpp"

namespace ergotune::cli {

/// How often the winner was measured again, how sure it is, and whether the search's values changed when they were
/// measured again.
void print_confidence(const Confidence& confidence);
/// Why a result that reads better than the confirmed winner stands behind it.
std::string unconfirmed_text(const Unconfirmed& result, const Repeats& repeats, const std::string& unit);

/// How many configurations have a time alone; nothing where none.
void print_screened(std::uint64_t screened);

/// What the parameters were seen to do; nothing where nothing is known.
void print_importance(const std::vector<Parameter>& parameters, const Importance& importance);

}  // namespace ergotune::cli
