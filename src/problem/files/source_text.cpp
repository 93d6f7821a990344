#include "problem/files/source_text.hpp"

#include <algorithm>
#include <cctype>

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

namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Returns the position after the literal that begins with the quote at `at`; the position after the quote if the
/// literal does not end on its line, such as an apostrophe in an #error.
std::size_t after_literal(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == quote) return i + 1;
    i += text[i] == '\\';
  }
  return at + 1;
}

/// Does the same for a raw string R"mark(...)mark" whose quote is at `at`.
std::size_t after_raw_string(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  if (open == std::string_view::npos || open - at > 17) return after_literal(text, at);
  const std::string end = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t found = text.find(end, open);
  return found == std::string_view::npos ? text.size() : found + end.size();
}

/// Returns the end of a // comment; a backslash at the end of a line continues it.
std::size_t after_line_comment(std::string_view text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  const auto goes_on = [&] {
    const std::string_view line = text.substr(at, end - at);
    return line.ends_with('\\') || line.ends_with("\\\r");
  };
  while (end != std::string_view::npos && goes_on()) end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

/// True for a quote that is a digit separator (1'000), not the beginning of a literal.
bool continues_number(std::string_view text, std::size_t at) {
  if (at == 0 || text[at] != '\'') return false;
  std::size_t begin = at;
  while (begin > 0 && (in_word(text[begin - 1]) || text[begin - 1] == '\'' || text[begin - 1] == '.')) --begin;
  return begin < at && std::isdigit(static_cast<unsigned char>(text[begin]));
}
bool opens_raw_string(std::string_view text, std::size_t at) {
  if (text[at] != '"' || at == 0 || text[at - 1] != 'R') return false;
  std::size_t begin = at;
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  const auto prefix = text.substr(begin, at - begin);
  return prefix == "R" || prefix == "u8R" || prefix == "uR" || prefix == "UR" || prefix == "LR";
}

std::string without_blanks(const std::string& text) {
  std::string tidy;
  bool continued = false;  // a blank line after a line that ends in a backslash ends a macro and must stay
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
    if (!line.empty() || continued) tidy.append(line).push_back('\n');
    continued = line.ends_with('\\');
    at = end + 1;
  }
  return tidy;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string code;
  bool lines_are_text = false;  // within a raw string
  for (std::size_t i = 0, end = 0; i < text.size(); i = end) {
    end = i + 1;
    const std::string_view two = text.substr(i, 2);
    const std::size_t close = two == "/*" ? text.find("*/", i + 2) : std::string_view::npos;
    if (two == "//" || close != std::string_view::npos) {
      end = two == "//" ? after_line_comment(text, i) : close + 2;
      code += ' ';
      continue;
    }
    if (opens_raw_string(text, i)) {
      end = after_raw_string(text, i);
      lines_are_text = lines_are_text || text.substr(i, end - i).find('\n') != std::string_view::npos;
    } else if ((text[i] == '"' || text[i] == '\'') && !continues_number(text, i)) {
      end = after_literal(text, i);
    }
    code += text.substr(i, end - i);
  }
  return lines_are_text ? code : without_blanks(code);
}

}  // namespace ergotune
