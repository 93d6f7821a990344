#pragma once

#include <filesystem>
#include <string>

#include "ergotune/problem.hpp"

namespace ergotune {

/// A native problem file. `file` is where relative paths begin and what messages name.
Problem load_toml_problem(const std::string& text, const std::filesystem::path& file);

/// T1 JSON or the plain JSON form.
Problem load_json_problem(const std::string& text, const std::filesystem::path& file);

}  // namespace ergotune
