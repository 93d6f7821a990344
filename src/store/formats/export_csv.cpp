// Comma-separated values (RFC 4180), and C headers of the best results.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/kernel_source/identifiers.hpp"
#include "problem/tables/quantity.hpp"
#include "store/formats/export.hpp"
#include "store/formats/exported_session.hpp"

namespace ergotune {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

constexpr std::string_view kBetweenWarnings = "; ";  // read_csv() splits there

/// The shortest text that is read back as the same number; empty for NaN and infinity.
std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

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
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string provenance_of(const Measurement& m) {
  for (const auto& [name, quantity] : m.quantities) {
    if (quantity.provenance != Provenance::measured) return to_string(quantity.provenance);
  }
  return to_string(Provenance::measured);
}

/// "; time 0.00123 s +-0.4 %"; empty if the result has no such quantity.
std::string value_text(const BestResult& best, const std::string& quantity) {
  const auto value = best.measurement.value(quantity);
  if (!value) return {};
  std::string text = fmt::format("; {} {:.4g} {}", in_comment(quantity), *value, unit_of(quantity, best.metrics));
  while (text.back() == ' ') text.pop_back();  // it has no unit
  const double half_width = best.measurement.half_width(quantity);
  if (!std::isfinite(half_width) || half_width <= 0) return text;
  if (half_width >= std::abs(*value)) return text + " (its interval is wider than that)";
  text += fmt::format(" +-{:.1f} %", 100 * half_width / std::abs(*value));
  return text;
}

/// "; time 0.00123 s +-0.4 %, confirmed in 5 paired repeats, the best of those confirmed with 98 % probability": its
/// objective, or the quantities of a Pareto front, a condition or an expression.
std::string certainty_text(const BestResult& best) {
  std::string text = value_text(best, best.objective);
  if (text.empty())
    for (const std::string& name : kernel_source::identifiers_in(best.objective)) text += value_text(best, name);
  if (best.confirmation_repeats == 0)
    return text + (provenance_of(best.measurement) == to_string(Provenance::measured) ? "; not confirmed" : "");
  text += fmt::format("; confirmed in {} paired repeat{}", best.confirmation_repeats,
                      best.confirmation_repeats == 1 ? "" : "s");
  if (best.probability_best)
    text += fmt::format(", the best of those confirmed with {:.0f} % probability", 100 * *best.probability_best);
  return text;
}

std::string block(const BestResult& best) {
  std::string size;
  for (const auto& [name, value] : best.constants) size += fmt::format(", {} = {}", name, value.to_string());
  std::string text = fmt::format("/* {}{}: best for {} ({})", in_comment(best.device), in_comment(size),
                                 in_comment(best.objective), provenance_of(best.measurement));
  if (best.front > 1)
    text += fmt::format("; of a Pareto front of {} points the best by its first objective", best.front);
  text += certainty_text(best);
  if (best.gain == 1 && best.gain_half_width == 0)
    text += "; the default configuration";
  else if (best.gain)
    text += fmt::format("; {:.2f}{} times as good as the default ({})", *best.gain,
                        best.gain_half_width > 0 ? fmt::format(" +-{:.2g}", best.gain_half_width) : "",
                        in_comment(best.default_configuration));
  std::string macros;
  for (std::size_t p = 0; p < best.parameters.size(); ++p) {
    const Parameter& parameter = best.parameters[p];
    const std::string value = best.configuration[p].to_string();
    if (parameter.kind != ParameterKind::code) {
      text += fmt::format("; run at {} = {}", parameter.name, value);
    } else if (best.configuration[p].is_string() && value.starts_with('-')) {  // no value of a macro
      text += fmt::format("; compile with {} ({})", in_comment(value), parameter.name);
    } else {
      macros +=
          fmt::format("#define {} {}\n", in_one_line(c_identifier(parameter.name)), macro_value(best.configuration[p]));
    }
  }
  return text + " */\n" + macros;
}

}  // namespace

std::string to_csv(const ResultSet& results) {
  std::set<std::string> quantities, with_degrees, metrics, with_errors;
  for (const StoredRow& row : results.rows) {
    for (const auto& [name, quantity] : row.measurement.quantities) {
      quantities.insert(name);
      if (has_other_degrees(quantity)) with_degrees.insert(name);
    }
    for (const auto& [name, value] : row.measurement.metrics) metrics.insert(name);
    for (const auto& [name, error] : row.measurement.metric_errors) with_errors.insert(name);
  }
  std::string text;
  for (const Parameter& parameter : results.parameters) text += cell(parameter.name) + ",";
  text += "status";
  for (const std::string& name : quantities) {
    text += fmt::format(",{0},{0}_standard_error,{0}_n", name);
    if (with_degrees.contains(name)) text += fmt::format(",{}_degrees", name);
  }
  for (const std::string& name : metrics) {
    text.append(1, ',').append(cell(name));
    if (with_errors.contains(name))
      text += fmt::format(",{0},{1}", cell(name + "_standard_error"), cell(name + "_degrees"));
  }
  text +=
      ",compile_seconds,verify_seconds,measure_seconds,tuner_seconds,device,provenance,objective,confirmed,searched,"
      "default,finished_at,warnings,message\n";
  const auto objective = exported_objective(results);
  const std::string goal =
      objective ? (objective->direction == Direction::maximise ? "max " : "min ") + objective->text : "";
  for (const StoredRow& row : results.rows) {
    const Measurement& m = row.measurement;
    const auto confirmation = exported_confirmation(row, objective);
    for (const Value& value : row.configuration) text += cell(value.to_string()) + ",";
    text += to_string(m.status);
    for (const std::string& name : quantities) {
      const auto found = m.quantities.find(name);
      text += found == m.quantities.end() ? ",,,"
                                          : fmt::format(",{},{},{}", cell(found->second.value),
                                                        cell(found->second.standard_error), found->second.n);
      if (with_degrees.contains(name))
        text.append(1, ',').append(found == m.quantities.end() ? std::string() : cell(found->second.degrees));
    }
    for (const std::string& name : metrics) {
      const auto found = m.metrics.find(name);
      const bool known = found != m.metrics.end();
      text.append(1, ',').append(known ? cell(found->second) : std::string());
      if (!with_errors.contains(name)) continue;
      text += known ? fmt::format(",{},{}", cell(m.standard_error(name)), cell(m.degrees(name))) : ",,";
    }
    text += fmt::format(",{},{},{},{},{},{},{},{},{},{:d},{},{},{}\n", m.compile_seconds, m.verify_seconds,
                        m.measure_seconds, m.tuner_seconds, cell(results.device), to_string(results.provenance),
                        cell(goal), confirmation ? confirmation->repeats : 0,
                        cell(confirmation && confirmation->searched ? *confirmation->searched : NAN),
                        is_default(results.parameters, row.configuration), cell(m.finished_at),
                        cell(fmt::format("{}", fmt::join(m.warnings, kBetweenWarnings))), cell(m.message));
  }
  return text;
}

std::string c_identifier(std::string parameter) {
  std::ranges::replace(parameter, '.', '_');
  return parameter;
}

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
  const bool dotted = !best.empty() && std::ranges::any_of(best.front().parameters, [](const Parameter& p) {
    return p.name.find('.') != std::string::npos;
  });
  std::string text = fmt::format(
      "/* Tuned parameters of {}, written by ergotune.{}{} */\n"
      "#ifndef {}\n#define {}\n\n",
      in_comment(problem), several ? " -DTARGET_<DEVICE> chooses the device; without it, the latest." : "",
      dotted ? " The parameter NAME of one KERNEL is the macro KERNEL_NAME." : "", guard, guard);
  if (several) text += blocks + "#else /* default */\n";
  if (!best.empty()) text += block(best.front()) + (several ? "#endif\n" : "");
  return text + fmt::format("\n#endif /* {} */\n", guard);
}

}  // namespace ergotune
