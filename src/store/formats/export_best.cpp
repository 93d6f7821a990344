// Exports for applications: C headers.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "store/formats/export.hpp"

namespace ergotune {

namespace {

/// "NVIDIA A100-PCIE-40GB" -> "NVIDIA_A100_PCIE_40GB"
std::string macro_name(const std::string& text) {
  std::string result;
  for (const unsigned char c : text) {
    const char next = std::isalnum(c) ? static_cast<char>(std::toupper(c)) : '_';
    if (next == '_' && (result.empty() || result.back() == '_')) continue;
    result += next;
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result.empty() ? "UNKNOWN" : result;
}

/// Removes control characters: a line end in a name or value would make the rest of it code of the header.
std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

/// C has no True: booleans become 1 and 0 for the preprocessor.
std::string macro_value(const Value& value) {
  if (value.is_bool()) return value.truthy() ? "1" : "0";
  return in_one_line(value.to_string());
}

/// Makes text safe for a comment.
std::string in_comment(std::string text) {
  for (auto at = text.find("*/"); at != std::string::npos; at = text.find("*/")) text.replace(at, 2, "* /");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string provenance_of(const Measurement& m) {
  for (const auto& [name, quantity] : m.quantities) {
    if (quantity.provenance != Provenance::measured) return to_string(quantity.provenance);
  }
  return to_string(Provenance::measured);
}

std::string block(const BestResult& best) {
  std::string size;
  for (const auto& [name, value] : best.constants) size += fmt::format(", {} = {}", name, value.to_string());
  std::string text = fmt::format("/* {}{}: best for {} ({})", in_comment(best.device), in_comment(size),
                                 in_comment(best.objective), provenance_of(best.measurement));
  std::string macros;
  for (std::size_t p = 0; p < best.parameters.size(); ++p) {
    const Parameter& parameter = best.parameters[p];
    const std::string value = best.configuration[p].to_string();
    if (parameter.kind != ParameterKind::code) {
      text += fmt::format("; run at {} = {}", parameter.name, value);
    } else if (best.configuration[p].is_string() && value.starts_with('-')) {  // no value of a macro
      text += fmt::format("; compile with {} ({})", in_comment(value), parameter.name);
    } else {
      macros += fmt::format("#define {} {}\n", in_one_line(parameter.name), macro_value(best.configuration[p]));
    }
  }
  return text + " */\n" + macros;
}

}  // namespace

std::string to_c_header(const std::vector<BestResult>& best) {
  const std::string problem = best.empty() ? "problem" : best.front().problem;
  const std::string name = macro_name(problem);
  const std::string guard =
      fmt::format("{}{}_TUNED_H", std::isdigit(static_cast<unsigned char>(name[0])) ? "PROBLEM_" : "", name);
  std::set<std::string> devices;
  std::string blocks;
  for (const BestResult& entry : best) {
    const std::string target = macro_name(entry.device);
    if (entry.problem != problem) continue;        // macros of different problems may have the same names
    if (!devices.insert(target).second) continue;  // only the first entry of a device counts
    blocks += fmt::format("#{} defined(TARGET_{})\n{}", devices.size() == 1 ? "if" : "elif", target, block(entry));
  }
  const bool several = devices.size() > 1;
  std::string text = fmt::format(
      "/* Tuned parameters of {}, written by ergotune.{} */\n"
      "#ifndef {}\n#define {}\n\n",
      in_comment(problem), several ? " -DTARGET_<DEVICE> chooses the device; without it, the latest." : "", guard,
      guard);
  if (several) text += blocks + "#else /* default */\n";
  if (!best.empty()) text += block(best.front()) + (several ? "#endif\n" : "");
  return text + fmt::format("\n#endif /* {} */\n", guard);
}

}  // namespace ergotune
