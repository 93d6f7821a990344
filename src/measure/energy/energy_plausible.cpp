#include "measure/energy/energy_plausible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergotune {

std::string why_implausible(const SensorInfo& info, double watts) {
  if (!std::isfinite(watts)) return "it reads no number";
  if (info.most_power > 0 && watts > info.most_power)
    return fmt::format("it reads {:.4g} W, far above any limit of its device", watts);
  if (info.min_power > 0 && watts < info.min_power)
    return fmt::format("it reads {:.3g} W, less than any device in operation draws", watts);
  return {};
}

namespace {

std::string why_implausible(const SensorInfo& info, const Reading& reading) {
  if (!std::isfinite(reading.time) || !std::isfinite(reading.value)) return "it reads no number";
  return info.kind == SensorKind::cumulative_energy ? std::string() : why_implausible(info, reading.value);
}

}  // namespace

bool plausible(const SensorTrace& trace) {
  return std::all_of(trace.readings.begin(), trace.readings.end(),
                     [&](const Reading& reading) { return why_implausible(trace.info, reading).empty(); });
}

std::string drop_implausible(SensorTrace& trace) {
  const std::size_t before = trace.readings.size();
  std::string why;
  std::erase_if(trace.readings, [&](const Reading& reading) {
    std::string one = why_implausible(trace.info, reading);
    if (one.empty()) return false;
    why = std::move(one);
    return true;
  });
  return 10 * (before - trace.readings.size()) > before ? why : std::string();
}

double calibration_error(const SensorInfo& info, double watts) {
  if (!(watts > 0)) return 0;
  return std::hypot(info.level_error, info.gain_error * (watts - info.level)) / watts;
}

}  // namespace ergotune
