#include "base/kernel_source/signature.hpp"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"

namespace ergotune::kernel_source {
namespace {

/// Removes a word; returns whether it was present.
bool take_word(std::string& text, std::string_view word) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) {
    const std::size_t end = at + word.size();
    if ((at > 0 && in_identifier(text[at - 1])) || (end < text.size() && in_identifier(text[end]))) continue;
    text.replace(at, word.size(), " ");
    return true;
  }
  return false;
}

std::vector<std::string> at_commas(std::string_view list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() == 1 && trimmed(parts[0]).empty()) parts.clear();
  return parts;
}

Parameter parameter_of(std::string text, bool with_name) {
  Parameter parameter;
  text = text.substr(0, text.find('='));
  for (const std::string_view word :
       {"__restrict__", "__restrict", "restrict", "volatile", "struct", "__grid_constant__", "register", "static"})
    take_word(text, word);
  // "const float*" and "float const*" promise not to write, "float* const" does not
  std::string pointed = text.substr(0, text.find('*'));
  parameter.constant = take_word(pointed, "const") && text.find('*') == text.rfind('*');
  while (take_word(text, "const")) {
  }
  const std::size_t star = text.find_last_of('*');
  if (with_name) {
    std::string behind(trimmed(std::string_view(text).substr(star == std::string::npos ? 0 : star + 1)));
    const std::size_t extents = behind.find('[');  // "float x[]" is a pointer, too
    for (std::size_t open = extents; open < behind.size(); open = behind.find('[', open + 1))
      parameter.extents.emplace_back(trimmed(behind.substr(open + 1, behind.find(']', open) - open - 1)));
    behind = behind.substr(0, extents);
    parameter.pointer = star != std::string::npos || text.find('[') != std::string::npos;
    std::size_t begin = behind.size();
    while (begin > 0 && in_identifier(behind[begin - 1])) --begin;
    parameter.name = behind.substr(begin);
    text = star == std::string::npos ? behind.substr(0, begin) : text.substr(0, star);
  } else {
    parameter.pointer = star != std::string::npos;
    if (parameter.pointer) text.erase(star);
  }
  text = std::string(trimmed(text));
  parameter.reference = text.ends_with('&');
  if (parameter.reference) text = std::string(trimmed(text.substr(0, text.size() - 1)));
  parameter.type = text;
  return parameter;
}

}  // namespace

std::vector<Parameter> parameters_of(std::string_view list, bool with_names) {
  std::vector<Parameter> parameters;
  for (std::string& part : at_commas(list)) parameters.push_back(parameter_of(std::move(part), with_names));
  if (parameters.size() == 1 && parameters[0].type == "void" && !parameters[0].pointer) parameters.clear();
  return parameters;
}

std::optional<std::vector<Parameter>> parameters_in_source(std::string_view source, std::string_view name) {
  for (std::size_t at = 0; (at = source.find(name, at)) != std::string_view::npos; at += name.size()) {
    std::size_t open = at + name.size();
    if ((at > 0 && in_identifier(source[at - 1])) || (open < source.size() && in_identifier(source[open]))) continue;
    while (open < source.size() && std::isspace(static_cast<unsigned char>(source[open]))) ++open;
    // the text since the last statement contains __global__
    const std::size_t statement = source.find_last_of(";}", at);
    const std::string_view before = source.substr(statement == std::string_view::npos ? 0 : statement,
                                                  at - (statement == std::string_view::npos ? 0 : statement));
    if (open >= source.size() || source[open] != '(' || before.find("__global__") == std::string_view::npos) continue;
    int depth = 0;
    for (std::size_t end = open; end < source.size(); ++end) {
      if (source[end] == '(') ++depth;
      if (source[end] == ')' && --depth == 0) return parameters_of(source.substr(open + 1, end - open - 1), true);
    }
  }
  return std::nullopt;
}

Demangled demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return {symbol, symbol, {}};  // "f" alone would be demangled as the type float
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  Demangled result{status == 0 && text ? text.get() : symbol, symbol, {}};
  if (status != 0 || !text) return result;
  // the list is between the last parentheses of the outermost level
  const std::string& whole = result.whole;
  std::size_t open = std::string::npos;
  int depth = 0;
  for (std::size_t i = whole.size(); i-- > 0;) {
    if (whole[i] == ')' || whole[i] == '>') ++depth;
    if ((whole[i] == '(' || whole[i] == '<') && --depth == 0 && whole[i] == '(') {
      open = i;
      break;
    }
  }
  if (open == std::string::npos) return result;
  result.list = whole.substr(open + 1, whole.rfind(')') - open - 1);
  std::string name = whole.substr(0, open);
  // remove template arguments, return type and namespaces
  depth = 0;
  std::string plain;
  for (const char c : name) {
    if (c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == '>') --depth;
  }
  plain = std::string(trimmed(plain));
  std::size_t begin = plain.size();
  while (begin > 0 && in_identifier(plain[begin - 1])) --begin;
  result.name = plain.substr(begin);
  return result;
}

std::string display_name(const Demangled& name) {
  std::string text = name.whole;
  if (!name.list.empty()) text = text.substr(0, text.rfind('(' + name.list));
  if (text.starts_with("void ")) text = text.substr(5);
  return text;
}

}  // namespace ergotune::kernel_source
