#include "measure/execution_parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {
namespace {

Value as_value(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e15) return Value(static_cast<std::int64_t>(number));
  return Value(number);
}

std::string describe(const ControlRange& range, const std::string& unit) {
  if (range.values.empty()) return fmt::format("anything from {:g} to {:g} {}", range.low, range.high, unit);
  if (range.values.size() <= 12) return fmt::format("{:g} {}", fmt::join(range.values, ", "), unit);
  return fmt::format("{} values from {:g} to {:g} {}", range.values.size(), range.values.front(), range.values.back(),
                     unit);
}

double lowest(const ControlRange& range) { return range.values.empty() ? range.low : range.values.front(); }
double highest(const ControlRange& range) { return range.values.empty() ? range.high : range.values.back(); }

// Limits are rounded to whole watts, which all drivers accept.
double snapped(const ControlRange& range, double value) {
  return nearest_value(range, range.values.empty() ? std::round(value) : value);
}

std::vector<double> equidistant(const ExecutionParameterSpec& spec, const ControlRange& range,
                                const std::string& name) {
  if (spec.count < 1) throw UserError(fmt::format("{}: the number of values must be at least 1", name), spec.place);
  const double low = lowest(range), high = highest(range);
  if (spec.count == 1) return {high};
  std::vector<double> values;
  for (int i = 0; i < spec.count; ++i) values.push_back(snapped(range, low + (high - low) * i / (spec.count - 1)));
  return values;
}

std::vector<double> between(const ExecutionParameterSpec& spec, const ControlRange& range, const std::string& name,
                            const std::string& unit) {
  if (spec.low > spec.high || spec.step < 0)
    throw UserError(
        fmt::format("{}: the range {:g} to {:g} step {:g} has no values", name, spec.low, spec.high, spec.step),
        spec.place);
  std::vector<double> values;
  if (spec.step == 0) {
    if (range.values.empty())
      throw UserError(fmt::format("{} can be {} on this device: give the range a step", name, describe(range, unit)),
                      spec.place);
    std::copy_if(range.values.begin(), range.values.end(), std::back_inserter(values),
                 [&](double v) { return v >= spec.low && v <= spec.high; });
  } else {
    if ((spec.high - spec.low) / spec.step > 1e6)
      throw UserError(fmt::format("{}: the range has more than a million values", name), spec.place);
    const double slack = spec.step * 1e-9;
    for (int i = 0; spec.low + i * spec.step <= spec.high + slack; ++i) {
      const double wanted = spec.low + i * spec.step;
      if (wanted < lowest(range) - 0.5 || wanted > highest(range) + 0.5) continue;
      values.push_back(snapped(range, wanted));
    }
  }
  if (values.empty())
    throw UserError(fmt::format("{}: nothing between {:g} and {:g} {} is supported; this device has {}", name, spec.low,
                                spec.high, unit, describe(range, unit)),
                    spec.place);
  return values;
}

}  // namespace

std::optional<ControlQuantity> quantity_of(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::core_clock_mhz:
      return ControlQuantity::core_clock_mhz;
    case ParameterKind::memory_clock_mhz:
      return ControlQuantity::memory_clock_mhz;
    case ParameterKind::power_limit_w:
      return ControlQuantity::power_limit_w;
    case ParameterKind::code:
      break;
  }
  return std::nullopt;
}

Parameter make_execution_parameter(const ExecutionParameterSpec& spec, const ControlRange& range,
                                   const std::vector<double>& suggested) {
  const auto quantity = quantity_of(spec.kind);
  if (!quantity) throw UserError("an execution parameter must be a clock or a power limit", spec.place);
  const std::string name = to_string(*quantity), unit = quantity_unit(*quantity);
  if (!range.supported)
    throw UserError(fmt::format("{} cannot be set on this device; leave it out of the problem", name), spec.place);
  std::vector<double> values;
  using Choice = ExecutionParameterSpec::Choice;
  switch (spec.choice) {
    case Choice::all:
      if (range.values.empty())
        throw UserError(
            fmt::format(
                "{} can be {} on this device: give a number of values or a range with a step instead of \"all\"", name,
                describe(range, unit)),
            spec.place);
      values = range.values;
      break;
    case Choice::equidistant:
      values = equidistant(spec, range, name);
      break;
    case Choice::range:
      values = between(spec, range, name, unit);
      break;
    case Choice::list:
      for (const auto& value : spec.values) {
        if (!value.is_number())
          throw UserError(fmt::format("{}: {} is not a number", name, value.to_literal()), spec.place);
        const auto checked = check_value(*quantity, range, value.as_real());
        if (!checked.ok()) throw UserError(fmt::format("{}: {}", name, checked.message), spec.place);
        values.push_back(range.values.empty() ? value.as_real() : nearest_value(range, value.as_real()));
      }
      if (values.empty()) throw UserError(fmt::format("{}: the list of values is empty", name), spec.place);
      break;
    case Choice::model:
      if (suggested.empty())
        throw UserError(fmt::format("{}: \"model\" suggests core clocks only, and there is none for this device; give "
                                    "\"all\", a number, a range or a list",
                                    name),
                        spec.place);
      for (const double value : suggested) values.push_back(snapped(range, value));
      break;
  }
  const std::set<double> distinct(values.begin(), values.end());
  Parameter parameter;
  parameter.name = name;
  parameter.kind = spec.kind;
  parameter.place = spec.place;
  for (const double value : distinct) parameter.values.push_back(as_value(value));
  // The default is the hardware's default value, or the listed value nearest to it, since gains are relative to an
  // untuned machine.
  const double reference = range.default_value.value_or(highest(range));
  parameter.default_value = as_value(*std::ranges::min_element(
      distinct, [&](double a, double b) { return std::abs(a - reference) < std::abs(b - reference); }));
  return parameter;
}

std::vector<Parameter> make_execution_parameters(const std::vector<ExecutionParameterSpec>& specs, Control& control,
                                                 const std::map<ParameterKind, std::vector<double>>& suggested) {
  std::vector<Parameter> parameters;
  for (const auto& spec : specs) {
    const auto quantity = quantity_of(spec.kind);
    if (!quantity) throw UserError("an execution parameter must be a clock or a power limit", spec.place);
    const auto range = control.range(*quantity);
    if (!range.supported)
      throw UserError(
          fmt::format("{} cannot be set through the control {}; leave it out, or name another control with --control",
                      to_string(*quantity), control.id()),
          spec.place);
    const auto values = suggested.find(spec.kind);
    parameters.push_back(
        make_execution_parameter(spec, range, values == suggested.end() ? std::vector<double>{} : values->second));
  }
  return parameters;
}

void resolve_execution_parameters(Problem& problem, Control& control,
                                  const std::map<ParameterKind, std::vector<double>>& suggested) {
  for (Parameter& parameter : make_execution_parameters(problem.execution_parameters, control, suggested))
    problem.parameters.push_back(std::move(parameter));
  problem.execution_parameters.clear();
}

ControlSetting setting_of(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  ControlSetting setting;
  for (std::size_t i = 0; i < parameters.size() && i < configuration.size(); ++i)
    if (const auto quantity = quantity_of(parameters[i].kind)) {
      // Kernel Tuner gives Tegra clocks in Hz.
      const double unit = parameters[i].name == "tegra_gr_clock" ? 1e-6 : 1.0;
      setting[*quantity] = unit * configuration[i].as_real();
    }
  return setting;
}

namespace {

bool holds_any(const std::string& text, std::initializer_list<const char*> strings) {
  return std::ranges::any_of(strings, [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace

ParameterKind execution_kind(const Parameter& parameter) {
  if (parameter.kind != ParameterKind::code) return parameter.kind;
  const bool numbers =
      !parameter.values.empty() && std::ranges::all_of(parameter.values, [](const Value& v) { return v.is_number(); });
  if (!numbers) return ParameterKind::code;
  std::string name = parameter.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (holds_any(name, {"pwr_limit", "power_limit", "power_cap", "powerlimit"})) return ParameterKind::power_limit_w;
  if (holds_any(name, {"mem_clock", "memory_clock", "mem_freq", "memory_freq", "mclk"})) {
    return ParameterKind::memory_clock_mhz;
  }
  if (holds_any(name, {"gr_clock", "core_clock", "sm_clock", "gpu_clock", "graphics_clock", "core_freq", "gr_freq",
                       "gpu_freq", "sclk"}) ||
      name == "clock" || name == "clock_mhz" || name == "frequency" || name == "freq") {
    return ParameterKind::core_clock_mhz;
  }
  return ParameterKind::code;
}

}  // namespace ergotune
