#include "measure/energy/power_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "base/statistics.hpp"

namespace ergotune {
namespace {

constexpr double kBand = 0.02;
constexpr std::size_t kLeastValues = 6;
// Names of series of the GPU; throttle reasons and the load have a prefix, and all other names are power sensors.
constexpr const char* kReason = "reason:";
constexpr const char* kLaunches = "launches";
bool of_the_gpu(std::string_view name) {
  return name == "core_clock_mhz" || name == "memory_clock_mhz" || name == "temperature_c" || name == "core_voltage_v";
}

std::vector<double> between(const TraceSeries& series, double from, double to) {
  std::vector<double> values;
  for (std::size_t i = 0; i < series.time.size(); ++i)
    if (series.time[i] >= from && series.time[i] <= to) values.push_back(series.value[i]);
  return values;
}

/// Returns the change per second over a span if it exceeds the noise.
double drift_over(const TraceSeries& series, double from, double to) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < series.time.size(); ++i) {
    if (series.time[i] < from || series.time[i] > to) continue;
    x.push_back(series.time[i]);
    y.push_back(series.value[i]);
  }
  const LineFit line = fit_line(x, y);
  return std::abs(line.slope) > 3 * line.slope_error ? line.slope : 0.0;
}

}  // namespace

const TraceSeries* PowerTrace::find(std::string_view name) const {
  for (const auto* list : {&power, &gpu})
    for (const TraceSeries& series : *list)
      if (series.name == name) return &series;
  return nullptr;
}

std::optional<Settling> settling_of(const TraceSeries& series, double load_seconds) {
  const double late = load_seconds * 2 / 3;
  const std::vector<double> loaded = between(series, 0, load_seconds), end = between(series, late, load_seconds);
  if (loaded.size() < kLeastValues || end.size() < 2) return std::nullopt;
  Settling out;
  const double first = std::min(0.0, series.time.front());
  if (const auto before = between(series, first / 2, 0); !before.empty()) out.before = mean(before);
  out.final = mean(end);
  out.most = *std::ranges::max_element(loaded);
  out.drift = drift_over(series, late, load_seconds);
  out.band = std::max(kBand * std::abs(out.final), 3 * std::sqrt(variance(end)));
  double settled = 0;
  bool outside = false;
  for (std::size_t i = 0; i < series.time.size(); ++i) {
    if (series.time[i] < 0 || series.time[i] > load_seconds) continue;
    const bool left = std::abs(series.value[i] - out.final) > out.band;
    if (outside && !left) settled = series.time[i];
    outside = left;
  }
  if (!outside && settled < late) out.seconds = settled;
  return out;
}

std::string to_csv(const PowerTrace& trace) {
  std::string text = "time_s,series,value\n";
  for (const auto* list : {&trace.power, &trace.gpu})
    for (const TraceSeries& series : *list)
      for (std::size_t i = 0; i < series.time.size(); ++i)
        text += fmt::format("{:.6f},{},{:.6g}\n", series.time[i], series.name, series.value[i]);
  for (const PowerTrace::Reason& reason : trace.reasons)
    text += fmt::format("{:.6f},{}{},1\n{:.6f},{}{},0\n", reason.from, kReason, reason.name, reason.to, kReason,
                        reason.name);
  text += fmt::format("0,{0},0\n{1:.6f},{0},{2}\n", kLaunches, trace.load_seconds, trace.launches);
  return text;
}

PowerTrace trace_from_csv(const std::string& text, SourcePlace place) {
  PowerTrace trace;
  std::map<std::string, std::size_t> known;
  std::istringstream lines(text);
  std::string line;
  const auto number = [&](const std::string& cell) {
    double value = 0;
    const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || rest != cell.data() + cell.size())
      throw UserError(fmt::format("is not a number: \"{}\"", cell), place);
    return value;
  };
  for (place.line = 1; std::getline(lines, line); ++place.line) {
    if (place.line == 1 || line.empty()) continue;
    // the id of a sensor may contain commas
    const auto first = line.find(','), last = line.rfind(',');
    if (first == last) throw UserError("is not a line of a trace: time_s,series,value", place);
    const double time = number(line.substr(0, first)), value = number(line.substr(last + 1));
    const std::string name = line.substr(first + 1, last - first - 1);
    if (name == kLaunches) {
      trace.load_seconds = time;
      trace.launches = static_cast<std::uint64_t>(value);
    } else if (name.starts_with(kReason)) {
      const std::string reason = name.substr(std::string_view(kReason).size());
      if (value > 0)
        trace.reasons.push_back({reason, time, time});
      else if (!trace.reasons.empty())
        trace.reasons.back().to = time;
    } else {
      auto& list = of_the_gpu(name) ? trace.gpu : trace.power;
      if (!known.contains(name)) {
        known[name] = list.size();
        list.push_back({name, {}, {}});
      }
      TraceSeries& series = list[known[name]];
      series.time.push_back(time);
      series.value.push_back(value);
    }
  }
  return trace;
}

}  // namespace ergotune
