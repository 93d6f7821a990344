#include "problem/draft/source_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"

namespace ergotune::draft {

using kernel_source::in_identifier;

namespace {

bool is_among(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

bool is_integer_type(std::string_view type) {
  static const std::regex kType(
      R"( ?(?:std ?:: ?)?(?:(?:unsigned|signed|int|long|short|size_t|ptrdiff_t|uint|ulong|u?int(?:_fast|_least)?\d+_t) ?)+)");
  constexpr std::size_t kLongest = 40;
  return type.size() <= kLongest && std::regex_match(type.begin(), type.end(), kType);
}

/// Whether a type's name behind `before` begins a cast and not a declaration: "return", "a *".
bool begins_expression(const std::string& before) {
  const std::string_view left = trimmed(before);
  if (left.ends_with("->") || left.ends_with("::")) return false;
  if (left.empty() || !in_identifier(left.back())) return true;
  for (const std::string_view word : {"return", "case", "else"})
    if (left.ends_with(word) && (left.size() == word.size() || !in_identifier(left[left.size() - word.size() - 1])))
      return true;
  return false;
}

/// Returns where the operand of a cast to an integer begins, behind "(int)", "int" of "int(x)", "std::size_t" and
/// "static_cast<int>"; `at` if no cast begins there. `before`: the text to its left.
std::size_t end_of_cast(const std::string& text, std::size_t at, const std::string& before) {
  constexpr std::size_t kLongest = 60;
  const std::string_view near = std::string_view(text).substr(at, kLongest);
  if (near.starts_with('(')) {
    const std::size_t close = near.find(')');
    if (close == std::string_view::npos || !is_integer_type(near.substr(1, close - 1))) return at;
    const std::string_view left = trimmed(before);
    const bool listed = (!before.empty() && in_identifier(before.back())) || left.ends_with("sizeof") ||
                        left.ends_with("alignof");  // f(int), sizeof (int)
    const std::size_t next = next_character(text, at + close + 1);
    return listed || next == text.size() || is_among(text[next], "),;]=") ? at : next;
  }
  if (!in_identifier(near.front()) || !begins_expression(before)) return at;
  std::size_t end = kernel_source::end_of_identifier(text, at);
  if (near.starts_with("std::")) end = kernel_source::end_of_identifier(text, at + 5);
  bool integer = is_integer_type(text.substr(at, end - at));
  if (text.compare(at, end - at, "static_cast") == 0) {
    const std::size_t open = near.find('<'), close = near.find('>');
    integer = open < close && close != std::string_view::npos && next_character(text, end) == at + open &&
              is_integer_type(near.substr(open + 1, close - open - 1));
    if (integer) end = at + close + 1;
  }
  const std::size_t next = next_character(text, end);
  return integer && next < text.size() && is_among(text[next], "({") ? next : at;
}

/// Returns where the bracket closes that opens a cast's operand; npos for other operands, lists and declarations such
/// as "int (*rows)[4]".
std::size_t close_of_operand(const std::string& text, std::size_t open) {
  constexpr std::size_t kLongest = 300;
  if (open == text.size() || !is_among(text[open], "({")) return std::string::npos;
  int depth = 0;
  for (std::size_t at = open; at < std::min(open + kLongest, text.size()) && text[at] != ';'; ++at) {
    depth += is_among(text[at], "([{") ? 1 : is_among(text[at], ")]}") ? -1 : 0;
    if (depth == 1 && text[at] == ',') break;
    if (depth > 0) continue;
    const std::size_t next = next_character(text, at + 1);
    const bool more = next < text.size() && is_among(text[next], "([.");
    return more || next_character(text, open + 1) == at ? std::string::npos : at;
  }
  return std::string::npos;
}

/// Whether an expression needs no parentheses as a factor: "n", "blockIdx.x", "get_group_id(0)".
bool is_primary(const std::string& expression) {
  const auto end = std::ranges::find_if_not(expression, [](char c) { return in_identifier(c) || c == '.'; });
  if (end == expression.end()) return true;
  const std::string rest(end, expression.end());
  return end != expression.begin() && rest.starts_with('(') && without_parentheses(rest).size() < rest.size();
}

}  // namespace

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

std::string without_casts(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t operand = end_of_cast(text, at, plain);
    std::size_t end = std::max(kernel_source::end_of_identifier(text, at), at + 1);
    if (operand == at) {
      plain += text.substr(at, end - at);
    } else if (const std::size_t close = close_of_operand(text, operand); close != std::string::npos) {
      const std::string inner = without_parentheses(without_casts(text.substr(operand + 1, close - operand - 1)));
      plain += is_primary(inner) ? inner : "(" + inner + ")";
      end = close + 1;
    } else if (text[at] == '(') {
      end = operand;
    } else {
      plain += text.substr(at, end - at);
    }
    at = end;
  }
  return plain;
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

kernel_source::Identifiers names_in(std::string expression) {
  std::ranges::replace(expression, '/', ' ');  // in C, "//" begins a comment
  return kernel_source::identifiers_in(expression);
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
