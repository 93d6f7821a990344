#include "ergotune/problem/load.hpp"

#include <fmt/format.h>

#include "base/files.hpp"
#include "problem/load_toml.hpp"

namespace ergotune {

Problem load_problem(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UserError("this is a folder; name the problem file in it", {file.string(), 0, 0});
  }
  const auto text = read_file(file);
  if (!text) throw UserError("the problem file does not exist or cannot be read", {file.string(), 0, 0});
  return parse_problem(*text, file);
}

Problem parse_problem(const std::string& text, const std::filesystem::path& file) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    throw UserError("the problem file is empty; docs/problem-file.md shows a whole one",
                    {file.string(), 0, 0});
  }
  // A TOML file may begin with '[' (a table), but never with '{'.
  return text[first] == '{' ? load_json_problem(text, file) : load_toml_problem(text, file);
}

}  // namespace ergotune
