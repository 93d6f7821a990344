#include "store/formats/export_names.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace ergotune {

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
