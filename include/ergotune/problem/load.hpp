// Reading and writing problem files.
#pragma once

#include <filesystem>
#include <string>

#include "ergotune/problem/problem.hpp"

namespace ergotune {

/// Reads a problem: native TOML, T1 JSON, or the plain JSON form {"tune_params":{..},"restrictions":[..],
/// "max_threads":n}; told apart by content. Throws UserError with file, line and column.
Problem load_problem(const std::filesystem::path& file);

/// From text, as if it stood in `file` (relative paths resolve against its folder).
Problem parse_problem(const std::string& text, const std::filesystem::path& file);

/// The problem as T1 JSON (what T1 cannot say is left out).
std::string to_t1_json(const Problem& problem);

/// Everything that a worker process needs, as one self-contained JSON document (sources included), and back.
std::string serialise(const Problem& problem);
Problem deserialise(const std::string& document);

}  // namespace ergotune
