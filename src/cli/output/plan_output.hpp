// What `tune --plan` does and says.
#pragma once

#include <string>

#include "cli/output/progress.hpp"
#include "tune/plans/plan.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// Runs and compares plans on what was prepared, and prints the result. `figure`, when not empty, is written as SVG.
void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::string& figure);

}  // namespace ergotune::cli
