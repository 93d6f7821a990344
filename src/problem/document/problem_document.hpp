// Conversion between problems and nodes, TOML and JSON.
#pragma once

#include <filesystem>
#include <string>

#include "ergotune/problem_file.hpp"
#include "problem/document/node.hpp"

namespace ergotune {

namespace document {
/// `file` is the file named in messages. `trusted`: the node was written by serialise() and is not checked again.
ProblemFile read_problem(const Node& node, const std::filesystem::path& file, bool trusted);
}  // namespace document

/// Parses a TOML problem file. `file` is named in messages, and relative paths are resolved against its folder.
ProblemFile load_toml_problem(const std::string& text, const std::filesystem::path& file);

/// Parses JSON: a problem file, T1 or the plain form.
ProblemFile load_json_problem(const std::string& text, const std::filesystem::path& file);

/// Writes the problem as a self-contained JSON problem file: sources included, paths absolute.
std::string to_json(const ProblemFile& problem);

/// Parse parts of a JSON problem file that programs pass: the steps of [workload], and one entry of [execution] such as
/// {"core_clock_mhz": "all"}. Throw UserError.
std::vector<Step> steps_from(const Problem& problem, const std::string& json);
ExecutionParameterSpec execution_parameter_from(const std::string& json);

}  // namespace ergotune
