// Conversion between problems and nodes, TOML and JSON, and the identity of a problem.
#pragma once

#include <filesystem>
#include <string>

#include "ergotune/problem_file.hpp"
#include "problem/document/node.hpp"

namespace ergotune {

/// The identity of a problem: everything that determines the results of its configurations. Sessions find earlier
/// results by it.
///
/// Returns a document that is equal for two problems exactly when the results of one are valid for the other, on the
/// same device and with the same measurement settings. It covers kernels, arguments, launch, options, constants,
/// parameters, restrictions and verification.
///
/// Files count by their contents, not by their names or places, and are read by this call: sources and the files that
/// they include (without comments in C-like languages), files that fill buffers, and expected outputs. Names of files
/// and of the problem, places, descriptions, settings, objective, metrics, plans and observers are left out (settings
/// and observers that determine results belong to the session's measurement settings), as is the spelling of numbers
/// and expressions. The order of parameters matters, because stored configurations are lists of values.
///
/// Functions given in memory (Python) cannot be compared and are left out; they decide which configurations are in the
/// space, not how these perform.
std::string identity_of(const Problem& problem);

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

/// Set attributes by name, as the keys of their table would. Throw UserError for an unknown name and a value of another
/// type.
void set_attributes(Problem& problem, const Attributes& values);
void set_attributes(Kernel& kernel, const Attributes& values);
void set_attributes(Launch& launch, const Attributes& values);

/// Parse parts of a JSON problem file that programs pass: the steps of [workload], and one entry of [execution] such as
/// {"core_clock_mhz": "all"}. Throw UserError.
std::vector<Step> steps_from(const Problem& problem, const std::string& json);
ExecutionParameterSpec execution_parameter_from(const std::string& json);

/// Returns the JSON Schema (draft 7) of a problem file, which applies to TOML and JSON.
std::string problem_schema();

/// Returns the reference tables of docs/problem-file.md in Markdown.
std::string problem_tables();

}  // namespace ergotune
