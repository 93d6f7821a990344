#include "model/power_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "measure/execution_parameters.hpp"

namespace ergotune {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_core_clock(const Parameter& parameter) { return execution_kind(parameter) == ParameterKind::core_clock_mhz; }

double at(const RecordedColumn* column, std::size_t row) { return column != nullptr ? column->value[row] : kNone; }
double error_at(const RecordedColumn* column, std::size_t row) {
  return column != nullptr && row < column->standard_error.size() ? column->standard_error[row] : 0.0;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(line)) {
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
  const auto column = [&](const char* name) { return std::ranges::find(header, name) - header.begin(); };
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
      if (const auto [rest, error] = std::from_chars(cells[at].data(), end, v); error != std::errc() || rest != end) {
        throw UserError(fmt::format("{} is not a number: \"{}\"", name, cells[at]), {file.string(), number, 0});
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

/// Clock, power and further quantities of a recording's rows.
class RecordedPower {
 public:
  /// Throws UserError if there is no clock or no power.
  explicit RecordedPower(const Recording& recording)
      : recording_(recording),
        power_(recording.column("power")),
        energy_(recording.column("energy")),
        time_(recording.column("time")),
        ran_(recording.column("core_clock")),
        memory_(recording.column("memory_clock")),
        temperature_(recording.column("temperature")),
        voltage_(recording.column("core_voltage")) {
    for (std::size_t i = 0; i < recording.parameters.size(); ++i) {
      if (is_core_clock(recording.parameters[i])) requested_ = i;
    }
    const SourcePlace file{recording.file.string(), 0, 0};
    if (!requested_ && ran_ == nullptr) {
      throw UserError("has no clock: a parameter such as nvml_gr_clock or core_clock_mhz, or a recorded core_freq",
                      file);
    }
    if (power_ == nullptr && (energy_ == nullptr || time_ == nullptr)) {
      throw UserError("has no power: nvml_power or ps_power, or energy with time", file);
    }
  }

  /// The clock's parameter; null if the clock is not a parameter.
  const Parameter* requested() const { return requested_ ? &recording_.parameters[*requested_] : nullptr; }

  /// The clock in MHz.
  double clock(std::size_t row) const {
    const double wanted = requested_ ? requested()->values[recording_.position(row)[*requested_]].as_real() : kNone;
    const double real = at(ran_, row) * 1e-6;
    // A clock in another unit, or read while idle, is not the actual one.
    if (std::isfinite(real) && (!std::isfinite(wanted) || (real > 0.2 * wanted && real < 1.1 * wanted))) return real;
    return wanted;
  }

  double watts(std::size_t row) const {
    const double p = at(power_, row);
    return std::isfinite(p) ? p : at(energy_, row) / at(time_, row);
  }

  double time(std::size_t row) const { return at(time_, row); }

  PowerSample sample(std::size_t row) const {
    PowerSample sample;
    sample.clock_mhz = clock(row);
    sample.power_w = watts(row);
    sample.power_error_w = error_at(power_, row);
    if (voltage_ != nullptr && at(voltage_, row) > 0) sample.voltage_v = at(voltage_, row);
    if (std::isfinite(at(memory_, row))) sample.memory_clock_mhz = at(memory_, row) * 1e-6;
    if (std::isfinite(at(temperature_, row))) sample.temperature_c = at(temperature_, row);
    return sample;
  }

 private:
  const Recording& recording_;
  const RecordedColumn *power_, *energy_, *time_, *ran_, *memory_, *temperature_, *voltage_;
  std::optional<std::size_t> requested_;
};

/// The rows of one code configuration: the same load at different clocks.
struct Load {
  std::vector<std::size_t> rows;
  std::set<double> clocks;
  double most_power = 0;
};

/// Grouped by the positions of the code parameters, without rows that lack a clock or a power.
std::map<std::vector<std::uint32_t>, Load> loads_of(const Recording& recording, const RecordedPower& recorded) {
  std::map<std::vector<std::uint32_t>, Load> loads;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    if (!usable(recording.statuses[row])) continue;
    const double clock = recorded.clock(row), watts = recorded.watts(row);
    if (!(clock > 0) || !(watts > 0) || !std::isfinite(watts)) continue;
    std::vector<std::uint32_t> key(recording.position(row).begin(), recording.position(row).end());
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (execution_kind(recording.parameters[i]) != ParameterKind::code) key[i] = 0;
    }
    Load& load = loads[key];
    load.rows.push_back(row);
    load.clocks.insert(clock);
    load.most_power = std::max(load.most_power, watts);
  }
  return loads;
}

}  // namespace

PowerSampling samples_of(const Recording& recording) {
  PowerSampling out;
  out.source = fmt::format("{}{}", recording.file.string(),
                           recording.device.empty() ? "" : fmt::format(" ({})", recording.device));
  out.device = recording.device;
  out.provenance = recording.provenance;
  out.notes = recording.warnings;
  const RecordedPower recorded(recording);
  const auto loads = loads_of(recording, recorded);
  if (loads.empty()) throw UserError("no configuration has both a clock and a power", {recording.file.string(), 0, 0});
  const Load& fullest = std::ranges::max_element(loads, [](const auto& a, const auto& b) {
                          return std::pair(a.second.clocks.size(), a.second.most_power) <
                                 std::pair(b.second.clocks.size(), b.second.most_power);
                        })->second;
  if (loads.size() > 1) {
    out.notes.push_back(fmt::format("of {} code configurations the one with most clocks and power is fitted: {}",
                                    loads.size(),
                                    describe(recording.parameters, recording.configuration(fullest.rows.front()))));
  }
  for (const std::size_t row : fullest.rows) {
    out.samples.push_back(recorded.sample(row));
    out.time_s.push_back(recorded.time(row));
  }
  note_range(out);
  if (const Parameter* requested = recorded.requested()) {
    for (const Value& value : requested->values) {
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
