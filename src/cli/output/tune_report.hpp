// Prints the result of `tune`.
#pragma once

#include <string>

#include "cli/output/progress.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {

/// Prints the result for people on standard output. `file`: the problem file; `top`: number of results shown.
void print_answer(const TunedSession& tuned, const std::string& file, std::size_t top);

/// Prints the best configuration with its values, gains and certainty; for results with one objective that have a best.
void print_best(const RankedResults& ranked);

}  // namespace ergotune::cli
