#include "problem/compiled_code.hpp"

namespace ergotune {
namespace {

/// Returns the first line after leading white space and comments (// and block comments).
std::string_view first_line_of(std::string_view text) {
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    const bool line = text.starts_with("//"), block = text.starts_with("/*");
    if (!line && !block) return text;
    const std::size_t end = text.find(line ? "\n" : "*/", 2);
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (line ? 1 : 2));
  }
  return text;
}

}  // namespace

bool is_compiled_code(std::string_view text) {
  constexpr std::string_view kElf(
      "\x7f"
      "ELF"),
      kFatbin("\x50\xed\x55\xba"), kWrapped("\xb1\x43\x62\x46");
  if (text.starts_with(kElf) || text.starts_with(kFatbin) || text.starts_with(kWrapped)) return true;
  return first_line_of(text).starts_with(".version");
}

}  // namespace ergotune
