// The call of a Fortran procedure, as C text.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

#include "device/host_call.hpp"

namespace ergotune::host {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// What the source says of a procedure, as far as its call must know it.
struct Procedure {
  std::vector<std::string> dummies;
  std::vector<std::string> by_value;
  std::string returns;  ///< "float", "double"; empty for anything else
};

std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  static const std::regex word("[a-z_][a-z0-9_]*");
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) names.push_back(it->str());
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// In lower case, without comments, one statement a line.
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

Procedure procedure_in(const std::string& source, const std::string& name) {
  Procedure found;
  const std::string text = statements_of(source);
  const std::regex head(R"(([^\n]*)\b(subroutine|function)\s+)" + name + R"(\s*\(([^)\n]*)\)([^\n]*))");
  std::smatch match;
  if (!std::regex_search(text, match, head)) return found;
  found.dummies = names_in(match[3]);
  const bool function = match[2] == "function";
  std::string result = name;
  static const std::regex named(R"(result\s*\(\s*([a-z_]\w*)\s*\))");
  const std::string tail = match[4];
  if (std::smatch which; std::regex_search(tail, which, named)) result = which[1];
  if (function) found.returns = real_type(match[1]);
  std::istringstream body(match.suffix().str());
  static const std::regex value(R"(\bvalue\b)"), end(R"(^\s*end\s*(subroutine|function)\b)");
  for (std::string line; std::getline(body, line) && !std::regex_search(line, end);) {
    const auto colons = line.find("::");
    if (colons == std::string::npos) continue;
    const std::string attributes = line.substr(0, colons);
    const auto names = names_in(line.substr(colons));
    if (std::regex_search(attributes, value)) found.by_value.insert(found.by_value.end(), names.begin(), names.end());
    if (function && found.returns.empty() && has(names, result)) found.returns = real_type(attributes);
  }
  return found;
}

}  // namespace

std::string call_of_fortran(const CompileJob& job) {
  // What a Fortran compiler calls a procedure: "name_" outside of modules, "__module_MOD_name" inside
  // (gfortran), "name" with bind(c). Whichever is there is taken: the others stay null, being weak.
  const std::size_t colons = job.function.find("::");
  const std::string name = colons == std::string::npos ? job.function : job.function.substr(colons + 2);
  std::vector<std::string> symbols;
  if (colons != std::string::npos) {
    symbols.push_back(fmt::format("__{}_MOD_{}", lower(job.function.substr(0, colons)), lower(name)));
  } else {
    symbols.push_back(lower(job.function) + "_");
  }
  symbols.push_back(name);
  if (lower(name) != name) symbols.push_back(lower(name));
  const Procedure procedure = procedure_in(job.source, lower(name));
  std::string types, values, text, kept;
  for (std::size_t i = 0; i < job.arguments.size(); ++i) {
    const ArgumentSignature& argument = job.arguments[i];
    const bool scalar = argument.kind == Argument::Kind::scalar;
    if (scalar && argument.name == kReturned) {
      if (!procedure.returns.empty()) kept = fmt::format("*(volatile double*)*(const unsigned long*)a[{}] = ", i);
      continue;
    }
    const bool by_value = scalar && i < procedure.dummies.size() && has(procedure.by_value, procedure.dummies[i]);
    types += fmt::format("{}{}", i ? ", " : "", by_value ? c_type(argument.type) : "void*");
    values += by_value ? fmt::format("{}*(const {}*)a[{}]", i ? ", " : "", c_type(argument.type), i)
                       : fmt::format("{}a[{}]", i ? ", " : "", i);
  }
  if (types.empty()) types = "void";
  const std::string returns = kept.empty() ? "void" : procedure.returns;
  for (const auto& symbol : symbols)
    text += fmt::format("extern {} {}({}) __attribute__((weak));\n", returns, symbol, types);
  text += fmt::format("int ergotune_found(void);\nint ergotune_found(void) {{ return 0");
  for (const auto& symbol : symbols) text += fmt::format(" || &{} != 0", symbol);
  text += fmt::format(";\n}}\nvoid {0}(void** a);\nvoid {0}(void** a) {{\n  (void)a;\n", kCallEntry);
  for (const auto& symbol : symbols) text += fmt::format("  if (&{0}) {{ {1}{0}({2}); return; }}\n", symbol, kept, values);
  return text + "}\n";
}

}  // namespace ergotune::host
