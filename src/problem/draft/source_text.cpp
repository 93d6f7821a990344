#include "problem/draft/source_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"

namespace ergotune::draft {

using kernel_source::in_identifier;

std::vector<std::size_t> ends_of(const std::string& text, const std::string& name, std::size_t end) {
  std::vector<std::size_t> found;
  if (name.empty()) return found;
  for (std::size_t at = 0; (at = text.find(name, at)) < std::min(end, text.size()); at += name.size())
    if ((at == 0 || !in_identifier(text[at - 1])) &&
        (at + name.size() == text.size() || !in_identifier(text[at + name.size()])))
      found.push_back(at + name.size());
  return found;
}

std::size_t next_character(const std::string& text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\n", at), text.size());
}

std::string initialiser_at(const std::string& text, std::size_t at) {
  const std::size_t begin = next_character(text, at);
  if (begin + 1 >= text.size() || text[begin] != '=' || text[begin + 1] == '=') return {};
  int open = 0;
  std::size_t end = begin + 1;
  for (; end < text.size() && text[end] != ';' && (open > 0 || text[end] != ','); ++end) {
    open += std::string_view("([{").find(text[end]) != std::string_view::npos;
    open -= std::string_view(")]}").find(text[end]) != std::string_view::npos;
    if (open < 0) break;  // of an enumeration
  }
  return std::string(trimmed(std::string_view(text).substr(begin + 1, end - begin - 1)));
}

std::string without_casts(const std::string& expression) {
  static const std::regex kCast("\\((?:unsigned|int|long|size_t|uint|u?int[0-9]+_t| )+\\)");
  return std::regex_replace(expression, kCast, "");
}

std::vector<std::string> list_at(const std::string& text, std::size_t open, char close) {
  int depth = 0;
  for (std::size_t at = open; at < text.size() && text[at] != ';'; ++at) {
    if (text[at] == text[open]) ++depth;
    if (text[at] == close && --depth == 0) return parts_of(text.substr(open + 1, at - open - 1), ",");
  }
  return {};
}

std::vector<std::string> parts_of(const std::string& text, const char* separators) {
  std::vector<std::string> parts(1);
  int open = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++open;
    if (c == ')' || c == ']' || c == '}') --open;
    if (open == 0 && std::string_view(separators).find(c) != std::string_view::npos)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

std::string without_parentheses(const std::string& text) {
  std::string plain(trimmed(text));
  while (plain.starts_with('(') && plain.ends_with(')')) {
    int open = 0;
    for (std::size_t at = 0; at + 1 < plain.size(); ++at) {
      open += plain[at] == '(' ? 1 : plain[at] == ')' ? -1 : 0;
      if (open == 0) return plain;
    }
    plain = trimmed(plain.substr(1, plain.size() - 2));
  }
  return plain;
}

std::string launch_bound_in(const std::string& head) {
  const std::size_t at = head.find("__launch_bounds__"), open = at == std::string::npos ? at : head.find('(', at);
  const auto list = open == std::string::npos ? std::vector<std::string>() : list_at(head, open, ')');
  return list.empty() ? std::string() : list.front();
}

std::optional<long> whole_number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 0);
  return text.empty() || (*end != '\0' && std::tolower(*end) != 'u') ? std::nullopt : std::optional(value);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

bool contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

std::string one_blank(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank || !result.ends_with(' ')) result += blank ? ' ' : c;
  }
  return result;
}

}  // namespace ergotune::draft
