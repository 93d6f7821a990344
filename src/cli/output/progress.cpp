#include "cli/output/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/clock.hpp"

namespace ergotune::cli {

std::string human(double value, const std::string& unit) {
  if (unit != "s" && unit != "J" && unit != "W" && unit != "Hz") {
    return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
  }
  static constexpr std::array<std::pair<double, const char*>, 8> kPrefixes{
      {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {0, "p"}}};
  const double size = std::abs(value);
  for (const auto& [scale, prefix] : kPrefixes) {
    if (unit == "s" && scale > 1) continue;
    if (size >= scale * 0.9995 && scale > 0) return fmt::format("{:.4g} {}{}", value / scale, prefix, unit);
  }
  return fmt::format("{:.4g} {}", value, unit);
}

std::string with_interval(const Measurement& measurement, const std::string& name, const std::vector<Metric>& metrics,
                          const std::string& unknown) {
  const auto value = measurement.value(name);
  if (!value) return "-";
  std::string text = human(*value, unit_of(name, metrics));
  const double half_width = measurement.half_width(name);
  if (half_width == 0 || *value == 0) return text;
  const double share = half_width / std::abs(*value);
  return text + (share < 1 ? fmt::format(" ±{:.1f} %", 100 * share) : unknown);
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string mark_of(Provenance provenance) {
  return provenance == Provenance::measured ? std::string() : fmt::format(" ({})", to_string(provenance));
}

std::string rate_text(double rate) {
  return rate >= 1 ? fmt::format("{:.1f} a second", rate) : fmt::format("{:.1f} a minute", 60 * rate);
}

std::string named_device(const std::string& device) { return device.empty() ? "an unnamed device" : device; }

std::string human_duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string fitting(std::vector<std::pair<int, std::string>> parts, std::size_t columns) {
  const auto joined = [&] {
    std::string text;
    for (const auto& [worth, part] : parts) text += part;
    return text;
  };
  while (parts.size() > 1 && joined().size() >= columns)
    parts.erase(std::ranges::min_element(parts, [](const auto& a, const auto& b) { return a.first < b.first; }));
  return joined().substr(0, columns - 1);
}

namespace {

/// "4 GPUs, 3 % idle", "3 of 4 GPUs, 12 % idle".
std::string device_shares_text(const std::vector<DeviceShare>& gpus) {
  double busy = 0, idle = 0;
  std::size_t there = 0;
  for (const DeviceShare& gpu : gpus) {
    busy += gpu.busy_seconds;
    idle += gpu.idle_seconds;
    there += !gpu.lost;
  }
  const std::string lost = there == gpus.size() ? "" : fmt::format("{} of ", there);
  const std::string waiting = idle > 0 ? fmt::format(", {:.0f} % idle", 100 * idle / (busy + idle)) : "";
  return fmt::format("{}{}{}", lost, counted(gpus.size(), "device"), waiting);
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : std::numeric_limits<std::size_t>::max();
}

}  // namespace

ProgressPrinter::ProgressPrinter(bool quiet, std::string objective, std::string unit, Provenance provenance)
    : quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      objective_(std::move(objective)),
      unit_(std::move(unit)),
      mark_(mark_of(provenance)) {}

void ProgressPrinter::set_name(std::string name) {
  name_ = std::move(name);
  terminal_ = false;
}

ProgressPrinter::~ProgressPrinter() { finish(); }

void ProgressPrinter::finish() {
  if (open_) fmt::print(stderr, "\n");
  open_ = false;
}

void ProgressPrinter::line(const std::string& text, bool replace) {
  if (replace) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    open_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressPrinter::operator()(const SessionProgress& progress) {
  if (quiet_) return;
  const double now = host_seconds();
  const bool better = progress.best && progress.best != last_best_;
  const bool phase_changed = progress.phase != phase_;
  // On a terminal ten times a second; in a log every ten seconds, or one second after the last line if the best has
  // improved.
  const double since = now - last_printed_;
  const bool due = terminal_ ? since >= 0.1 : since >= (better ? 1.0 : 10.0) || progress.evaluated == 1;
  if (!due && !phase_changed) return;
  last_printed_ = now;
  last_best_ = progress.best;
  phase_ = progress.phase;
  const std::uint64_t done = progress.evaluated + progress.resumed;
  const double rate = progress.seconds > 0 ? static_cast<double>(progress.evaluated) / progress.seconds : 0;
  // each with a rank: texts of low rank are dropped if the line is too long for the terminal, which would scroll
  std::vector<std::pair<int, std::string>> parts{
      {9, fmt::format("{}{}{} of {}", name_, name_.empty() ? "" : ": ", done, progress.total)}};
  if (progress.resumed > 0) parts.emplace_back(1, fmt::format(" ({} known)", progress.resumed));
  if (progress.failed > 0) parts.emplace_back(4, fmt::format(", {} failed", progress.failed));
  const bool confirming = progress.phase.starts_with("confirming");
  // Known results arrive without delay and would distort the rate.
  if (rate > 0 && !confirming) parts.emplace_back(2, ", " + rate_text(rate));
  if (!progress.gpus.empty()) parts.emplace_back(3, ", " + device_shares_text(progress.gpus));
  const bool own = !progress.objective.empty();
  if (progress.best)
    parts.emplace_back(8, fmt::format(", best {} {}{}{}", own ? progress.objective : objective_,
                                      human(*progress.best, own ? progress.unit : unit_), mark_,
                                      confirming ? " before confirmation" : ""));
  if (!progress.phase.empty()) parts.emplace_back(6, ", " + progress.phase);
  if (progress.seconds_left) parts.emplace_back(5, fmt::format(", {} left", human_duration(*progress.seconds_left)));
  line(fitting(std::move(parts), terminal_ ? terminal_columns() : std::numeric_limits<std::size_t>::max()), terminal_);
}

}  // namespace ergotune::cli
