// The call of a Fortran procedure as C text, and the same call as Fortran text, with which the compiler checks the
// arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "device/host/host_call.hpp"

namespace ergotune::host {
namespace {

struct FortranProcedure {
  std::string name;    ///< in lower case; empty: the source has no such procedure
  std::string module;  ///< module that contains it; empty: none
  std::vector<std::string> dummies;
  std::vector<std::string> by_value;
  bool function = false;
  std::string returns;  ///< "float" or "double"; empty: any other type
};

/// Converts to lower case, in which Fortran names are compared.
std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

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

/// `name`: name of the procedure, or the name given by bind(c, name="..."); case-insensitive.
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

}  // namespace

std::string call_of_fortran(const CompileJob& job) {
  // Linker names of a Fortran procedure: "name_" outside of modules, "__module_MOD_name" inside (gfortran), "name" with
  // bind(c). They are declared weak, so that those that do not exist are null.
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
  const FortranProcedure procedure = procedure_in(job.source, name);
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
  for (const auto& symbol : symbols)
    text += fmt::format("  if (&{0}) {{ {1}{0}({2}); return; }}\n", symbol, kept, values);
  return text + "}\n";
}

namespace {

constexpr const char* kCheckPlace = "(call generated by ergotune)";

/// Returns the Fortran type of an element; bytes for types that are not compared.
std::string fortran_type(ElementType type) {
  if (type == ElementType::float32) return "real(c_float)";
  if (type == ElementType::float64) return "real(c_double)";
  return fmt::format("integer(c_int{}_t)", type == ElementType::float16 ? 8 : 8 * size_of(type));
}

bool is_compared(ElementType type) { return size_of(type) > 1 && type != ElementType::float16; }

/// Returns the number of arguments without kReturned.
std::size_t passed_arguments(const CompileJob& job) {
  const bool returned = !job.arguments.empty() && job.arguments.back().name == kReturned;
  return job.arguments.size() - (returned ? 1 : 0);
}

FortranProcedure called_procedure(const CompileJob& job) {
  const std::size_t colons = job.function.find("::");
  return procedure_in(job.source, colons == std::string::npos ? job.function : job.function.substr(colons + 2));
}

/// Returns a line with a continuation mark that is valid in free and in fixed form (where it is beyond the last
/// column).
std::string continued(const std::string& line) { return fmt::format("{:<72}&\n     & ", line); }

}  // namespace

std::string check_in_fortran(const CompileJob& job) {
  const FortranProcedure procedure = called_procedure(job);
  if (procedure.name.empty() || (procedure.function && procedure.returns.empty())) return {};
  // The compiler would read this file from an earlier compilation instead of the module in the source.
  std::error_code error;
  if (!procedure.module.empty() && std::filesystem::exists(procedure.module + ".mod", error)) return {};
  const std::size_t count = passed_arguments(job);
  const auto name = [](std::size_t i) { return fmt::format("ergotune_{}", i); };
  const std::string called = procedure.module.empty() ? procedure.name : "ergotune_called";
  std::string text = fmt::format("\n# 1 \"{}\"\n      subroutine ergotune_check()\n", kCheckPlace);
  text += "      use, intrinsic :: iso_c_binding\n";
  text += procedure.module.empty()
              ? "\n"
              : fmt::format("      use {}, only: {} => {}\n", procedure.module, called, procedure.name);
  text += "      implicit none\n";
  const char* result = procedure.returns == "double" ? "real(c_double)" : "real(c_float)";
  text += fmt::format("      {} :: ergotune_result{}\n", result,
                      procedure.function && procedure.module.empty() ? ", " + called : "");
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("      {}, save :: {}(1)\n", fortran_type(job.arguments[i].type), name(i));
  std::string call =
      fmt::format("      if (.false.) {}{}(", procedure.function ? "ergotune_result = " : "call ", called);
  // an array element is a valid actual argument for scalars and arrays
  for (std::size_t i = 0; i < count; ++i) {
    text += continued(call);
    call = fmt::format("{}(1){}", name(i), i + 1 < count ? "," : "");
  }
  return text + call + ")\n      end subroutine ergotune_check\n";
}

namespace {

/// Returns the compiler's messages about the check, one per line.
std::vector<std::string> remarks_on_check(const std::string& log) {
  static const std::regex place("generated by ergotune\\):\\d+:\\d+:");
  static const std::regex message("(?:Error|Warning): ([^\\n]*)");
  std::vector<std::string> remarks;
  for (std::sregex_iterator it(log.begin(), log.end(), place), end; it != end; ++it) {
    const std::string rest(it->suffix().first, log.end());
    if (std::smatch found; std::regex_search(rest, found, message)) remarks.push_back(found[1]);
  }
  return remarks;
}

std::string name_as_text(const CompileJob& job, std::size_t argument) {
  const std::string& name = job.arguments[argument].name;
  return name.empty() ? std::to_string(argument + 1) : "'" + name + "'";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

std::string mismatch_in_check(const CompileJob& job, const std::string& log) {
  static const std::regex types(R"(passed [^;]* to ((?:REAL|INTEGER)\(\d+\)))");
  static const std::regex argument(R"(argument \W*([A-Za-z_]\w*))");
  const std::vector<std::string> remarks = remarks_on_check(log);
  if (remarks.empty()) return {};
  const FortranProcedure procedure = called_procedure(job);
  for (const std::string& remark : remarks) {
    if (contains(remark, "More actual than formal") || contains(remark, "Missing actual argument"))
      return fmt::format("{} arguments are declared, but the procedure takes another number of them ({})",
                         passed_arguments(job), remark);
    for (const char* part :
         {"Rank mismatch", "explicit interface", "ssumed-shape", "must be ALLOCATABLE", "must be a POINTER"}) {
      if (contains(remark, part))
        return fmt::format(
            "the procedure takes an array that only Fortran can pass, of assumed shape (x(:)), allocatable or a "
            "pointer; declare it with its size, x(n), or as x(*) ({})",
            remark);
    }
    std::smatch name, wanted;
    if (!std::regex_search(remark, name, argument) || !std::regex_search(remark, wanted, types)) continue;
    // the compiler names the dummy argument, but its position in the text is not reliable
    const auto place = std::ranges::find(procedure.dummies, lower(name[1]));
    const auto i = static_cast<std::size_t>(place - procedure.dummies.begin());
    if (i >= passed_arguments(job) || job.arguments[i].bytes > 0 || !is_compared(job.arguments[i].type)) continue;
    return fmt::format("argument {} is declared {}, but the procedure takes {}", name_as_text(job, i),
                       to_string(job.arguments[i].type), lower(wanted[1]));
  }
  return {};
}

bool mentions_check(const std::string& log) { return contains(log, kCheckPlace); }

}  // namespace ergotune::host
