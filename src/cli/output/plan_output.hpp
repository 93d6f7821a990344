// Runs plans for `tune --plan` and prints their results.
#pragma once

#include <string>

#include "cli/output/progress.hpp"
#include "tune/plans/plan.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// Runs and compares plans on a prepared session, and prints the result. `figure`: SVG file to write; empty: none.
void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::string& figure);

}  // namespace ergotune::cli
