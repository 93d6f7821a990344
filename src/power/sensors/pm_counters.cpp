// Cray's pm_counters: power and energy of a node and its parts, updated ten times per second.
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "ergotune/error.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {
namespace {

constexpr std::string_view kFolder = "/sys/cray/pm_counters";
constexpr int kTries = 5;

/// A line of a counter file: "<number> J" or "<number> W", on newer systems followed by "<time> us".
struct Line {
  double value = 0;
  std::optional<double> time;  ///< s since the Unix epoch
};

std::optional<Line> parse_line(const std::string& text, const char* unit) {
  std::istringstream words(text);
  Line line;
  std::string word;
  if (!(words >> line.value >> word) || word != unit) return std::nullopt;
  double microseconds = 0;
  if (words >> microseconds >> word && word == "us") line.time = microseconds * 1e-6;
  return line;
}

class PmCountersSensor : public SysfsSensor {
 public:
  PmCountersSensor(const Sysfs& sysfs, SensorInfo info, std::filesystem::path file)
      : SysfsSensor(sysfs, std::move(info)), file_(std::move(file)) {}

  ReadStatus read(std::vector<Reading>& out) override {
    const std::filesystem::path folder(kFolder);
    for (int i = 0; i < kTries; ++i) {
      // "freshness" counts updates: equal values before and after mean that all was read within one update
      const auto before = sysfs_.read(folder / "freshness");
      if (before && last_freshness_ == before) return ReadStatus::no_new_data;
      const auto text = sysfs_.read(file_);
      const double now = host_seconds();
      const double wall = wall_seconds();
      if (!text) return fail(fmt::format("{} cannot be read", file_.string()));
      if (sysfs_.read(folder / "freshness") != before) continue;
      const auto line = parse_line(*text, "J");
      if (!line) return fail(fmt::format("{} contains \"{}\", not joules", file_.string(), *text));
      if (!before && last_ && line->value == *last_) return ReadStatus::no_new_data;  // there is no freshness file
      last_freshness_ = before;
      if (last_ && line->value < *last_) {
        last_ = line->value;
        return fail("the energy counter went backwards: the node controller has restarted");
      }
      last_ = line->value;
      // the counter's time stamp, if it is from the same clock; a reading cannot be older than a few updates
      double time = now;
      if (line->time && std::abs(wall - *line->time) < 1) time = std::min(now, now - (wall - *line->time));
      out.push_back({time, corrected(line->value)});
      return ReadStatus::ok;
    }
    return fail("the counters changed during every read");
  }

 private:
  std::filesystem::path file_;
  std::optional<std::string> last_freshness_;
  std::optional<double> last_;
};

class PmCountersFamily : public SensorFamily {
 public:
  std::string name() const override { return "pm_counters"; }

  std::vector<SensorInfo> list(std::vector<std::string>& notes) override {
    std::vector<SensorInfo> found;
    for (const auto& entry : sysfs_.list(kFolder)) {
      if (entry != "energy" && !entry.ends_with("_energy")) continue;
      const std::string part = entry == "energy" ? "node" : entry.substr(0, entry.size() - 7);
      SensorInfo info;
      info.id = "pm_counters:" + part;
      info.name = "Cray " + part + " energy";
      info.kind = SensorKind::cumulative_energy;
      info.scope = part == "node"              ? SensorScope::node
                   : part.starts_with("accel") ? SensorScope::module
                                               : SensorScope::package;
      info.driver = sysfs_.read(std::filesystem::path(kFolder) / "version").value_or("");
      info.unit_step = 1;
      const auto hertz = sysfs_.read_integer(std::filesystem::path(kFolder) / "raw_scan_hz");
      info.update_period = hertz && *hertz > 0 ? 1.0 / static_cast<double>(*hertz) : 0.1;
      if (part == "node")
        found.insert(found.begin(), info);
      else
        found.push_back(info);
    }
    if (found.empty()) notes.push_back(fmt::format("pm_counters: no {}", kFolder));
    return found;
  }

  std::unique_ptr<Sensor> open(const std::string& id) override {
    std::vector<std::string> notes;
    const SensorInfo info = choose_sensor(id, "pm_counters", list(notes), notes);
    const std::string part = info.id.substr(std::string("pm_counters:").size());
    return std::make_unique<PmCountersSensor>(
        sysfs_, info, std::filesystem::path(kFolder) / (part == "node" ? "energy" : part + "_energy"));
  }

  std::vector<std::unique_ptr<Sensor>> for_device(const std::string&, const std::string&, bool is_cpu,
                                                  std::vector<std::string>& notes) override {
    std::vector<std::unique_ptr<Sensor>> sensors;
    std::vector<std::string> accelerators;
    bool cpu = false;
    for (const auto& info : list(notes)) {
      if (info.id.starts_with("pm_counters:accel")) accelerators.push_back(info.id);
      cpu |= info.id == "pm_counters:cpu";
    }
    if (is_cpu && cpu) sensors.push_back(open("pm_counters:cpu"));
    if (!is_cpu && accelerators.size() == 1) sensors.push_back(open(accelerators[0]));
    // accelN has neither UUID nor PCI address, so that with several accelerators it is unknown which one is this device
    if (!is_cpu && accelerators.size() > 1)
      notes.push_back(fmt::format(
          "pm_counters: {} accelerators, which nothing ties to a device; name the right one, as in --sensor {}",
          accelerators.size(), accelerators[0]));
    return sensors;
  }

 private:
  Sysfs sysfs_ = Sysfs::from_environment();
};

}  // namespace

std::unique_ptr<SensorFamily> make_pm_counters_family() { return std::make_unique<PmCountersFamily>(); }

}  // namespace ergotune
