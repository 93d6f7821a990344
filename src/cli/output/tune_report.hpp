// What `tune` says at the end.
#pragma once

#include <string>

#include "cli/output/progress.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {

/// The answer for people, on standard output.
void print_answer(const TunedSession& tuned, const std::string& file, std::size_t top);

}  // namespace ergotune::cli
