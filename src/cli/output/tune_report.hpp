// Prints the result of `tune`.
#pragma once

#include <string>

#include "cli/output/progress.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {

/// Prints the result for people on standard output. `file`: the problem file; `top`: number of results shown.
void print_answer(const TunedSession& tuned, const std::string& file, std::size_t top);

}  // namespace ergotune::cli
