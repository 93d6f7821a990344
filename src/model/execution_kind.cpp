#include "model/execution_kind.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace ergotune {
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
