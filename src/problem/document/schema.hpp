// The format of problem files, as a JSON Schema and as tables for the documentation. Both are generated from the fields
// (problem/document/fields.hpp).
#pragma once

#include <string>

namespace ergotune {

/// Returns the JSON Schema (draft 7) of a problem file, which applies to TOML and JSON.
std::string problem_schema();

/// Returns the reference tables of docs/problem-file.md in Markdown.
std::string problem_tables();

}  // namespace ergotune
