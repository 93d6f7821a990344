#include "device/host/fortran_source.hpp"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

namespace ergotune::host {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

namespace {

std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  static const std::regex word("[a-z_][a-z0-9_]*");
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) names.push_back(it->str());
  return names;
}

/// Returns the source in lower case, without comments, with one statement per line.
std::string statements_of(const std::string& source) {
  std::string text;
  std::istringstream lines(lower(source));
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('!'));
    const auto first = line.find_first_not_of(" \t&");
    const auto last = line.find_last_not_of(" \t\r");
    if (first == std::string::npos) continue;
    const bool continued = line[last] == '&';
    text += line.substr(first, last + (continued ? 0 : 1) - first) + (continued ? " " : "\n");
  }
  return text;
}

std::string real_type(const std::string& declaration) {
  if (declaration.find("double") != std::string::npos) return "double";
  if (declaration.find("real") == std::string::npos) return "";
  static const std::regex wide(R"(real\s*(\*\s*8|\(\s*(kind\s*=\s*)?(8|c_double|real64|dp)\s*\)))");
  return std::regex_search(declaration, wide) ? "double" : "float";
}

/// Returns the module that contains the end of `before`.
std::string module_around(const std::string& before) {
  static const std::regex line(R"((^|\n)\s*(end\s*)?module\b\s*([a-z_]\w*)?\s*(?=\n|$))");
  std::string module;
  for (std::sregex_iterator it(before.begin(), before.end(), line), end; it != end; ++it)
    module = (*it)[2].matched ? "" : (*it)[3].str();
  return module;
}

/// Finds the head of a procedure. `match`: the text before the keyword, the keyword, the name, the dummies, the rest.
bool find_head(const std::string& text, const std::string& name, std::smatch& match) {
  static const char* const kBefore = R"(([^\n]*)\b(subroutine|function)\s+)";
  static const char* const kDummies = R"(\s*\(([^)\n]*)\))";
  if (std::regex_search(text, match, std::regex(kBefore + ("(" + name + ")") + kDummies + R"(([^\n]*))"))) return true;
  const std::string bound = R"(([^\n]*\bname\s*=\s*["'])" + name + R"(["'][^\n]*))";
  return std::regex_search(text, match, std::regex(std::string(kBefore) + R"(([a-z_]\w*))" + kDummies + bound));
}

}  // namespace

FortranProcedure procedure_in(const std::string& source, const std::string& wanted) {
  FortranProcedure found;
  const std::string text = statements_of(source);
  std::smatch match;
  if (!find_head(text, lower(wanted), match)) return found;
  found.name = match[3];
  found.module = module_around(match.prefix().str());
  found.dummies = names_in(match[4]);
  found.function = match[2] == "function";
  std::string result = found.name;
  static const std::regex named(R"(result\s*\(\s*([a-z_]\w*)\s*\))");
  const std::string tail = match[5];
  if (std::smatch which; std::regex_search(tail, which, named)) result = which[1];
  if (found.function) found.returns = real_type(match[1]);
  std::istringstream body(match.suffix().str());
  static const std::regex value(R"(\bvalue\b)"), end(R"(^\s*end\s*(subroutine|function)\b)");
  for (std::string line; std::getline(body, line) && !std::regex_search(line, end);) {
    const auto colons = line.find("::");
    if (colons == std::string::npos) continue;
    const std::string attributes = line.substr(0, colons);
    const auto names = names_in(line.substr(colons));
    if (std::regex_search(attributes, value)) found.by_value.insert(found.by_value.end(), names.begin(), names.end());
    if (found.function && found.returns.empty() && has(names, result)) found.returns = real_type(attributes);
  }
  return found;
}

}  // namespace ergotune::host
