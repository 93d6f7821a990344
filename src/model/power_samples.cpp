#include "ergotune/model/power_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "ergotune/base/error.hpp"
#include "ergotune/model/execution_kind.hpp"

namespace ergotune {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_core_clock(const Parameter& parameter) {
  return execution_kind(parameter) == ParameterKind::core_clock_mhz;
}

double at(const RecordedColumn* column, std::size_t row) {
  return column != nullptr ? column->value[row] : kNone;
}
double error_at(const RecordedColumn* column, std::size_t row) {
  return column != nullptr && row < column->standard_error.size() ? column->standard_error[row] : 0.0;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const auto first = cell.find_first_not_of(" \t\r\""), last = cell.find_last_not_of(" \t\r\"");
    cells.push_back(first == std::string::npos ? std::string() : cell.substr(first, last - first + 1));
  }
  return cells;
}

std::optional<PowerSampling> read_csv(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  int number = 0;
  std::vector<std::string> header;
  PowerSampling out;
  const auto column = [&](const char* name) {
    return std::find(header.begin(), header.end(), name) - header.begin();
  };
  while (std::getline(stream, line)) {
    ++number;
    if (line.empty() || line == "\r" || line[0] == '#') continue;
    const auto cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      const auto end = static_cast<std::ptrdiff_t>(header.size());
      if (column("clock_mhz") == end || column("power_w") == end) return std::nullopt;
      continue;
    }
    const auto value = [&](const char* name) -> std::optional<double> {
      const auto at = static_cast<std::size_t>(column(name));
      if (at >= cells.size() || cells[at].empty()) return std::nullopt;
      double v = 0;
      const char* end = cells[at].data() + cells[at].size();
      if (const auto [rest, error] = std::from_chars(cells[at].data(), end, v);
          error != std::errc() || rest != end) {
        throw UserError(fmt::format("{} is no number: \"{}\"", name, cells[at]), {file.string(), number, 0});
      }
      return v;
    };
    const auto clock = value("clock_mhz"), power = value("power_w");
    if (!clock || !power) throw UserError("a line needs clock_mhz and power_w", {file.string(), number, 0});
    PowerSample sample;
    sample.clock_mhz = *clock;
    sample.power_w = *power;
    sample.power_error_w = value("power_error_w").value_or(0);
    sample.voltage_v = value("voltage_v");
    sample.memory_clock_mhz = value("memory_clock_mhz");
    sample.temperature_c = value("temperature_c");
    out.samples.push_back(sample);
    out.time_s.push_back(value("time_s").value_or(kNone));
  }
  if (header.empty()) return std::nullopt;
  out.source = file.string();
  return out;
}

void note_range(PowerSampling& out) {
  out.low_mhz = std::numeric_limits<double>::infinity();
  for (const PowerSample& s : out.samples) {
    out.low_mhz = std::min(out.low_mhz, s.clock_mhz);
    out.high_mhz = std::max(out.high_mhz, s.clock_mhz);
  }
}

}  // namespace

PowerSampling samples_of(const Recording& recording) {
  PowerSampling out;
  out.source = fmt::format("{}{}", recording.file.string(),
                           recording.device.empty() ? "" : fmt::format(" ({})", recording.device));
  out.device = recording.device;
  out.notes = recording.warnings;
  const RecordedColumn* power = recording.column("power");
  const RecordedColumn* energy = recording.column("energy");
  const RecordedColumn* time = recording.column("time");
  const RecordedColumn* ran = recording.column("core_clock");
  const RecordedColumn* memory = recording.column("memory_clock");
  const RecordedColumn* temperature = recording.column("temperature");
  const RecordedColumn* voltage = recording.column("core_voltage");
  std::optional<std::size_t> asked;
  for (std::size_t i = 0; i < recording.parameters.size(); ++i) {
    if (is_core_clock(recording.parameters[i])) asked = i;
  }
  const std::string file = recording.file.string();
  if (!asked && ran == nullptr) {
    throw UserError(
        "has no clock: a parameter such as nvml_gr_clock or core_clock_mhz, or a recorded core_freq",
        {file, 0, 0});
  }
  if (power == nullptr && (energy == nullptr || time == nullptr)) {
    throw UserError("has no power: nvml_power or ps_power, or energy with time", {file, 0, 0});
  }

  // By code configuration: the same load at different clocks.
  struct Group {
    std::vector<std::size_t> rows;
    std::set<double> clocks;
    double most_power = 0;
  };
  std::map<std::vector<std::uint32_t>, Group> groups;
  const auto clock_of = [&](std::size_t row) {
    const double wanted =
        asked ? recording.parameters[*asked].values[recording.position(row)[*asked]].as_real() : kNone;
    const double real = at(ran, row) * 1e-6;
    // A clock read in another unit or while idle is not the clock that ran.
    if (std::isfinite(real) && (!std::isfinite(wanted) || (real > 0.2 * wanted && real < 1.1 * wanted)))
      return real;
    return wanted;
  };
  const auto power_of = [&](std::size_t row) {
    const double p = at(power, row);
    return std::isfinite(p) ? p : at(energy, row) / at(time, row);
  };
  for (std::size_t row = 0; row < recording.size(); ++row) {
    if (!usable(recording.statuses[row])) continue;
    const double clock = clock_of(row), watts = power_of(row);
    if (!(clock > 0) || !(watts > 0) || !std::isfinite(watts)) continue;
    std::vector<std::uint32_t> key(recording.position(row).begin(), recording.position(row).end());
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (execution_kind(recording.parameters[i]) != ParameterKind::code)
        key[i] = 0;
    }
    Group& group = groups[key];
    group.rows.push_back(row);
    group.clocks.insert(clock);
    group.most_power = std::max(group.most_power, watts);
  }
  if (groups.empty()) throw UserError("no configuration has both a clock and a power", {file, 0, 0});
  const auto best = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.clocks.size(), a.second.most_power) <
           std::pair(b.second.clocks.size(), b.second.most_power);
  });
  if (groups.size() > 1) {
    const Configuration configuration = recording.configuration(best->second.rows.front());
    out.notes.push_back(
        fmt::format("of {} code configurations the one with most clocks and power is fitted: {}",
                    groups.size(), describe(recording.parameters, configuration)));
  }
  for (const std::size_t row : best->second.rows) {
    PowerSample sample;
    sample.clock_mhz = clock_of(row);
    sample.power_w = power_of(row);
    sample.power_error_w = error_at(power, row);
    if (voltage != nullptr && at(voltage, row) > 0) sample.voltage_v = at(voltage, row);
    if (std::isfinite(at(memory, row))) sample.memory_clock_mhz = at(memory, row) * 1e-6;
    if (std::isfinite(at(temperature, row))) sample.temperature_c = at(temperature, row);
    out.samples.push_back(sample);
    out.time_s.push_back(at(time, row));
  }
  note_range(out);
  if (asked) {
    for (const Value& value : recording.parameters[*asked].values) {
      out.low_mhz = std::min(out.low_mhz, value.as_real());
      out.high_mhz = std::max(out.high_mhz, value.as_real());
    }
  }
  return out;
}

PowerSampling load_power_samples(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) throw UserError("cannot be read", {file.string(), 0, 0});
  if (auto csv = read_csv(file)) {
    if (csv->samples.empty()) throw UserError("holds no samples", {file.string(), 0, 0});
    note_range(*csv);
    return *std::move(csv);
  }
  return samples_of(load_recording(file));
}

}  // namespace ergotune
