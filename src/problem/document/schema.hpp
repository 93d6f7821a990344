// What a problem file may hold, as a JSON Schema and as tables for the documentation; both follow from the fields
// (problem/document/fields.hpp).
#pragma once

#include <string>

namespace ergotune {

/// The JSON Schema (draft 7) of a problem file, TOML or JSON.
std::string problem_schema();

/// The reference tables of docs/problem-file.md in Markdown.
std::string problem_tables();

}  // namespace ergotune
