#include "ergotune/problem_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>

#include "base/files.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/draft/problem_draft.hpp"

namespace ergotune {

ProblemFile load_problem(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    // a folder written by `ergotune capture`
    if (std::filesystem::exists(file / "problem.toml", error)) return load_problem(file / "problem.toml");
    throw UserError("this is a folder without a problem.toml; name the problem file in it", {file.string(), 0, 0});
  }
  const auto text = read_file(file);
  if (!text)
    throw UserError(errno == EFBIG
                        ? fmt::format("this file has more than {} MiB; a problem file is smaller", kLargestText >> 20)
                        : "the problem file does not exist or cannot be read",
                    {file.string(), 0, 0});
  return parse_problem(*text, file);
}

namespace {

/// Recognises files that are not problem files; returns what the file is and what to do, or an empty string.
std::string describe_other_file(std::string_view text, const std::filesystem::path& file) {
  if (can_draft_from(file))
    return fmt::format("this is a source; \"ergotune init {}\" writes a first problem file for it", file.string());
  if (text.starts_with("SQLite format 3"))
    return "this is a store of results; \"ergotune show\" and \"ergotune report\" read it, and to go on tuning name "
           "the problem file";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "this is UTF-16; save the problem file as UTF-8";
  if (text.starts_with("\x1f\x8b")) return "this is a compressed file; unpack it (gzip -d)";
  if (text.starts_with("<!") || text.starts_with("<html")) return "this is a page for a browser, not a problem file";
  return {};
}

}  // namespace

ProblemFile parse_problem(const std::string& text, const std::filesystem::path& file) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    throw UserError("the problem file is empty; \"ergotune init\" writes one from a kernel's source",
                    {file.string(), 0, 0});
  }
  if (const std::string message = describe_other_file(text, file); !message.empty())
    throw UserError(message, {file.string(), 0, 0});
  // A TOML file may begin with '[' (a table), but never with '{'.
  return text[first] == '{' ? load_json_problem(text, file) : load_toml_problem(text, file);
}

}  // namespace ergotune
