// What `tune --plan` does and says.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/progress.hpp"
#include "tune/plans/plan.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// The contract's document: {"plans":[{"plan","evaluated","energy","above_optimum_percent","best"}]} and
/// more.
nlohmann::ordered_json plans_document(const PlanComparison& comparison, const std::vector<Parameter>& parameters);
/// The comparison as a table with bars.
void print_plans(const PlanComparison& comparison, const std::vector<Parameter>& parameters);

/// Runs and compares plans on what was prepared, and prints the result. `figure`, when not empty, is written as SVG.
void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::filesystem::path& figure);

}  // namespace ergotune::cli
