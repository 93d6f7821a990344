// Problems from the values of a file.
#pragma once

#include <filesystem>
#include <string>

#include "ergotune/problem_file.hpp"
#include "problem/document/node.hpp"

namespace ergotune {

namespace document {
/// `file` is what messages name. `trusted`: a document that serialise() wrote, which is not checked again.
ProblemFile read_problem(const Node& node, const std::filesystem::path& file, bool trusted);
}  // namespace document

/// A native problem file. `file` is where relative paths begin and what messages name.
ProblemFile load_toml_problem(const std::string& text, const std::filesystem::path& file);

/// JSON: a native problem file, T1 or the plain form.
ProblemFile load_json_problem(const std::string& text, const std::filesystem::path& file);

/// The problem as a JSON problem file that stands for itself: sources included, paths absolute.
std::string to_json(const ProblemFile& problem);

/// Parts of a JSON problem file for programs: the list of steps of [workload], and one entry of [execution], as
/// {"core_clock_mhz": "all"}. Throw UserError.
std::vector<Step> steps_from(const Problem& problem, const std::string& json);
ExecutionParameterSpec execution_parameter_from(const std::string& json);

}  // namespace ergotune
