// Prints the result of `tune`, and what `show` prints of a search besides its winner.
#pragma once

#include <cstdint>
#include <string>

#include "cli/output/progress.hpp"
#include "report/result_document.hpp"
#include "search/importance.hpp"
#include "search/ranking.hpp"
#include "tune/plans/plan.hpp"
#include "tune/session/session.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// Below this probability of the winner its rivals are as good within the noise.
inline constexpr double kSure = 0.6;

/// Prints how many times the winner was confirmed, how certain it is, and whether values changed between search and
/// confirmation.
void print_confidence(const Confidence& confidence);
/// Mark of a result that was not confirmed: the value that is expected when it is measured again.
std::string unconfirmed_text(const Unconfirmed& result, const std::string& unit);

/// How many configurations have a time alone; nothing where none.
void print_screened(std::uint64_t screened);

/// What the parameters were seen to do; nothing where nothing is known.
void print_importance(const ResultSet& results, const Importance& importance);

/// Prints the result for people on standard output. `file`: the problem file; `top`: number of results shown.
void print_answer(const TunedSession& tuned, const std::string& file, std::size_t top);

/// Whether an expression, such as an objective, contains the name of a quantity or metric.
bool mentions(const std::string& expression, const std::string& name);

/// Prints the best configuration with its values, gains and certainty; for results with one objective that have a best.
void print_best(const RankedResults& ranked);

/// Runs and compares plans on a prepared session, and prints the result. `figure`: SVG file to write; empty: none.
void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::string& figure);

}  // namespace ergotune::cli
