#include "store/cache/cache_quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

namespace ergotune {

namespace {

constexpr double kMillisecond = 1e-3, kMegahertz = 1e6, kMillivolt = 1e-3;

constexpr std::array<std::pair<std::string_view, double>, 11> kScales{{{"time", kMillisecond},
                                                                       {"compile_time", kMillisecond},
                                                                       {"verification_time", kMillisecond},
                                                                       {"benchmark_time", kMillisecond},
                                                                       {"strategy_time", kMillisecond},
                                                                       {"framework_time", kMillisecond},
                                                                       {"core_freq", kMegahertz},
                                                                       {"mem_freq", kMegahertz},
                                                                       {"pwr_core_freq", kMegahertz},
                                                                       {"pwr_mem_freq", kMegahertz},
                                                                       {"gr_voltage", kMillivolt}}};

// Our names and the recorded names that correspond to them, the preferred first. The bare name is last: in a cache it
// is a metric that the user computed.
struct Meaning {
  std::string_view ours;
  std::array<std::string_view, 6> recorded;
};
constexpr std::array<Meaning, 6> kMeanings{
    {{"energy", {"ps_energy", "nvml_energy", "gpu_energy", "tegra_energy", "rocm_energy", "energy"}},
     {"power", {"ps_power", "nvml_power", "gpu_power", "tegra_power", "rocm_power", "power"}},
     {"core_clock", {"core_freq", "pwr_core_freq", "core_clock", "", "", ""}},
     {"memory_clock", {"mem_freq", "pwr_mem_freq", "memory_clock", "", "", ""}},
     {"temperature", {"temperature", "gpu_temp", "pwr_temperature", "", "", ""}},
     {"core_voltage", {"gr_voltage", "core_voltage", "", "", "", ""}}}};

ParameterKind parameter_kind(std::string_view name) {
  if (name == "nvml_gr_clock" || name == "core_clock_mhz") return ParameterKind::core_clock_mhz;
  if (name == "nvml_mem_clock" || name == "memory_clock_mhz") return ParameterKind::memory_clock_mhz;
  if (name == "nvml_pwr_limit" || name == "power_limit_w") return ParameterKind::power_limit_w;
  return ParameterKind::code;
}

}  // namespace

double cache_scale(std::string_view key) {
  const auto found = std::ranges::find_if(kScales, [&](const auto& entry) { return entry.first == key; });
  return found == kScales.end() ? 1.0 : found->second;
}

bool is_observed(std::string_view key) {
  if (key == "energy" || key == "power") return false;
  if (key == "time" || cache_scale(key) != 1.0) return true;
  if (key.ends_with("_energy") || key.ends_with("_power")) return true;
  return std::ranges::any_of(kMeanings, [&](const Meaning& meaning) {
    return std::ranges::find(meaning.recorded, key) != meaning.recorded.end();
  });
}

std::optional<Status> status_from_cache(std::string_view text) {
  if (text == "CompilationFailedConfig") return Status::compile_error;
  if (text == "RuntimeFailedConfig" || text == "ErrorConfig") return Status::runtime_error;
  if (text == "InvalidConfig") return Status::unsupported;
  return std::nullopt;
}

std::string status_for_cache(Status status) {
  switch (status) {
    case Status::compile_error:
      return "CompilationFailedConfig";
    case Status::unsupported:
      return "InvalidConfig";
    default:
      return "RuntimeFailedConfig";
  }
}

std::vector<std::string> rename_columns(std::vector<RecordedColumn>& columns) {
  std::vector<std::string> remarks;
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(columns, [&](const RecordedColumn& c) { return c.name == name; });
  };
  for (const Meaning& meaning : kMeanings) {
    for (const std::string_view key : meaning.recorded) {
      const auto column = key.empty() ? columns.end() : find(key);
      if (column == columns.end()) continue;
      if (key == meaning.ours) {
        column->is_metric = column->is_metric && !is_observed(key);
        break;
      }
      if (const auto other = find(meaning.ours); other != columns.end()) {
        other->name = fmt::format("{}_metric", meaning.ours);
        remarks.push_back(fmt::format("\"{}\" is {}; the file's own \"{}\" is kept as \"{}\"", meaning.ours, key,
                                      meaning.ours, other->name));
      }
      column->name = meaning.ours;
      column->is_metric = false;
      break;
    }
  }
  return remarks;
}

std::string renamed(const std::string& key) {
  for (const Meaning& meaning : kMeanings) {
    if (key != meaning.ours && std::ranges::find(meaning.recorded, key) != meaning.recorded.end()) {
      return std::string(meaning.ours);
    }
  }
  return key;
}

bool renamed_target(std::string_view name) {
  return std::ranges::any_of(kMeanings, [&](const Meaning& meaning) { return meaning.ours == name; });
}

Parameter recorded_parameter(const std::string& name) {
  Parameter parameter;
  parameter.name = name;
  parameter.kind = parameter_kind(name);
  return parameter;
}

std::string cache_name(const std::string& name, const Quantity& quantity) {
  if (name == "core_clock") return "core_freq";
  if (name == "memory_clock") return "mem_freq";
  if (name == "core_voltage") return "gr_voltage";
  if (name == "energy" || name == "power") {
    if (quantity.sensor.starts_with("nvml")) return "nvml_" + name;
    if (quantity.sensor.starts_with("powersensor")) return "ps_" + name;
  }
  return name;
}

std::string cache_time_stamp(double seconds_since_epoch) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds_since_epoch));
  const auto microseconds = static_cast<int>((seconds_since_epoch - std::floor(seconds_since_epoch)) * 1e6);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}+00:00", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, microseconds);
}

}  // namespace ergotune
