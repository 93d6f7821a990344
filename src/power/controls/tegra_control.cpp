// Jetson (Tegra): the GPU's clock through devfreq, the memory's (EMC) through the debugfs of the boot and power
// management processor, and the power modes of nvpmodel by the power that they allow. Pinning the GPU's clock writes
// min = max; railgating is switched off first, because a railgated GPU forgets its clock.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "base/process/process.hpp"
#include "power/controls/control_backends.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEmc = "/sys/kernel/debug/bpmp/debug/clk/emc";
constexpr const char* kEmcRates = "/sys/kernel/debug/bpmp/debug/emc/possible_rates";
constexpr const char* kPowerModes = "/etc/nvpmodel.conf";
constexpr const char* kPowerMode = "/var/lib/nvpmodel/status";
constexpr const char* kNvpmodel = "/usr/sbin/nvpmodel";
constexpr const char* kPowerModeStep = "nvpmodel";

/// A mode of nvpmodel whose name says how much power it allows: "MODE_15W_6CORE", "30W".
struct PowerMode {
  int id = 0;
  double watts = 0;
};

/// Watts in a mode's name; 0 where it has none ("MAXN").
double watts_in(const std::string& name) {
  for (std::size_t end = name.find('W'); end != std::string::npos; end = name.find('W', end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
    if (begin < end) return std::stod(name.substr(begin, std::min<std::size_t>(end - begin, 6)));
  }
  return 0;
}

/// Lines "< POWER_MODEL ID=2 NAME=MODE_15W_6CORE >" of nvpmodel's configuration, by power.
std::vector<PowerMode> power_modes(const Sysfs& sysfs) {
  std::vector<PowerMode> modes;
  std::istringstream lines(sysfs.read(kPowerModes).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "<" || !(words >> word) || word != "POWER_MODEL") continue;
    PowerMode mode{-1, 0};
    while (words >> word) {
      if (word.starts_with("ID=")) mode.id = std::atoi(word.c_str() + 3);
      if (word.starts_with("NAME=")) mode.watts = watts_in(word.substr(5));
    }
    if (mode.id >= 0 && mode.watts > 0) modes.push_back(mode);
  }
  std::ranges::stable_sort(modes, [](const PowerMode& a, const PowerMode& b) { return a.watts < b.watts; });
  return modes;
}

/// "pmode:0002", which nvpmodel keeps.
std::optional<int> power_mode_now(const Sysfs& sysfs) {
  const std::string text = sysfs.read(kPowerMode).value_or("");
  if (!text.starts_with("pmode:")) return std::nullopt;
  return std::atoi(text.c_str() + 6);
}

/// Hz, ascending: "204000 665600 2133000 (kHz)", without a unit in Hz, else the least and the highest rate.
std::vector<long long> memory_rates(const Sysfs& sysfs) {
  const auto least = sysfs.read_integer(fs::path(kEmc) / "min_rate");
  const auto highest = sysfs.read_integer(fs::path(kEmc) / "max_rate");
  if (!least || !highest || *least <= 0) return {};
  std::vector<long long> rates = parse_numbers(sysfs.read(kEmcRates).value_or(""));
  for (long long& rate : rates)
    if (rate < 10'000'000) rate *= 1000;  // no memory of a Jetson runs at 10 MHz: kHz
  std::erase_if(rates, [&](long long rate) { return rate < *least || rate > *highest; });
  return rates.empty() ? parse_numbers(fmt::format("{} {}", *least, *highest)) : rates;
}

class TegraControl final : public Control {
 public:
  TegraControl(ControlEnvironment environment, fs::path folder)
      : environment_(std::move(environment)), sysfs_(environment_.sysfs_root), folder_(std::move(folder)) {
    for (const long long hertz : parse_numbers(sysfs_.read(folder_ / "available_frequencies").value_or("")))
      if (hertz > 0) frequencies_.push_back(hertz);
    if (writable(sysfs_, memory("rate"))) memory_rates_ = memory_rates(sysfs_);
    if (sysfs_.exists(kNvpmodel) && power_mode_now(sysfs_)) modes_ = power_modes(sysfs_);
  }

  std::string id() const override { return "tegra"; }
  std::string device_key() const override { return folder_.string(); }
  ControlEnvironment environment() const override { return environment_; }

  ControlRange range(ControlQuantity quantity) override {
    if (quantity == ControlQuantity::memory_clock_mhz) return memory_range();
    if (quantity == ControlQuantity::power_limit_w) return power_range();
    ControlRange range = range_of(in_mhz(frequencies_));
    if (const auto now = read_range(sysfs_, files()); now && now->low == now->high)
      range.current = static_cast<double>(now->high) / 1e6;
    return range;
  }

  std::vector<double> core_clocks_at(double) override { return range(ControlQuantity::core_clock_mhz).values; }
  bool permitted() override { return writable(sysfs_, files().min) && writable(sysfs_, files().max); }
  std::string external_lock_sign() override { return {}; }  // all settings can be read, and so restored

  std::vector<RestoreStep> snapshot() override {
    std::vector<RestoreStep> steps;
    // The mode goes first: it limits the clocks, which are written after it.
    if (const auto mode = power_mode_now(sysfs_); mode && !modes_.empty())
      steps.push_back({kPowerModeStep, kPowerMode, std::to_string(*mode), ControlQuantity::power_limit_w});
    snapshot_range(sysfs_, files(), steps);
    snapshot_text(sysfs_, railgate(), steps);
    if (!memory_rates_.empty()) {
      // A rate that was not locked changes with the load and is nothing to put back.
      const std::size_t before = steps.size();
      if (sysfs_.read(memory("mrq_rate_locked")) == "1") snapshot_text(sysfs_, memory("rate"), steps);
      snapshot_text(sysfs_, memory("mrq_rate_locked"), steps);
      for (std::size_t i = before; i < steps.size(); ++i) steps[i].quantity = ControlQuantity::memory_clock_mhz;
    }
    return steps;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) return checked;
    if (quantity == ControlQuantity::memory_clock_mhz) return set_memory(nearest(memory_rates_, value));
    if (quantity == ControlQuantity::power_limit_w) return set_power(value);
    return set_core(nearest(frequencies_, value));
  }

  ControlResult check(ControlQuantity quantity, double value) override {
    std::vector<double> now;
    if (quantity == ControlQuantity::core_clock_mhz) {
      if (const auto set = read_range(sysfs_, files()))
        now = {static_cast<double>(set->low) * 1e-6, static_cast<double>(set->high) * 1e-6};
    } else if (const auto current = range(quantity).current) {
      now = {*current};
    }
    // Exact in Hz as far as MHz carry it.
    for (const double one : now)
      if (std::abs(one - value) > 0.5) return changed_meanwhile(quantity, value, one);
    return {};
  }

  ControlResult restore(const RestoreStep& step) override {
    if (step.kind == kFrequencyRangeStep && step.target == files().min)
      return restore_range(sysfs_, files(), step.value);
    if (step.kind == kSysfsStep)
      for (const fs::path& file : {railgate(), memory("rate"), memory("mrq_rate_locked")})
        if (step.target == file) return restore_text(sysfs_, file, step.value);
    if (step.kind == kPowerModeStep && step.target == kPowerMode) return set_mode(std::atoi(step.value.c_str()));
    return foreign_step(step);
  }

 private:
  FrequencyFiles files() const { return {folder_ / "min_freq", folder_ / "max_freq"}; }
  fs::path railgate() const { return folder_ / "device/railgate_enable"; }
  static fs::path memory(const char* file) { return fs::path(kEmc) / file; }

  static std::vector<double> in_mhz(const std::vector<long long>& rates) {
    std::vector<double> clocks;
    for (const long long hertz : rates) clocks.push_back(static_cast<double>(hertz) / 1e6);
    return clocks;
  }
  /// Values are exact in Hz; MHz carry at most rounding.
  static long long nearest(const std::vector<long long>& rates, double mhz) {
    return *std::ranges::min_element(rates, [&](long long a, long long b) {
      return std::abs(static_cast<double>(a) - mhz * 1e6) < std::abs(static_cast<double>(b) - mhz * 1e6);
    });
  }

  ControlRange memory_range() const {
    ControlRange range = range_of(in_mhz(memory_rates_));
    if (!range.supported)
      range.why_not = fmt::format("{} cannot be written: debugfs belongs to root", memory("rate").string());
    else if (sysfs_.read(memory("mrq_rate_locked")) == "1")
      if (const auto now = sysfs_.read_integer(memory("rate"))) range.current = static_cast<double>(*now) / 1e6;
    return range;
  }

  ControlRange power_range() const {
    std::set<double> watts;
    for (const PowerMode& mode : modes_) watts.insert(mode.watts);
    ControlRange range = range_of({watts.begin(), watts.end()});
    if (!range.supported) range.why_not = fmt::format("no power mode of {} names its power", kPowerModes);
    const auto now = power_mode_now(sysfs_);
    for (const PowerMode& mode : modes_)
      if (now == mode.id) range.default_value = range.current = mode.watts;
    return range;
  }

  ControlResult set_core(long long hertz) {
    if (const auto gate = sysfs_.read(railgate()); gate && *gate != "0")
      if (auto result = write_file(sysfs_, railgate(), "0"); !result.ok()) return result;
    core_ = hertz;
    return write_range(sysfs_, files(), hertz, hertz);
  }

  ControlResult set_memory(long long hertz) {
    if (auto result = write_file(sysfs_, memory("mrq_rate_locked"), "1"); !result.ok()) return result;
    memory_ = hertz;
    return write_file(sysfs_, memory("rate"), std::to_string(hertz));
  }

  /// Of modes that allow the same power the one that is in force, else the first.
  ControlResult set_power(double watts) {
    const auto now = power_mode_now(sysfs_);
    const PowerMode* chosen = nullptr;
    for (const PowerMode& mode : modes_)
      if (std::abs(mode.watts - watts) < 0.5 && (!chosen || mode.id == now)) chosen = &mode;
    if (auto result = set_mode(chosen->id); !result.ok()) return result;
    // A mode brings its own limits of the clocks; what this session has set holds on.
    if (core_)
      if (auto result = set_core(*core_); !result.ok()) return result;
    return memory_ ? set_memory(*memory_) : ControlResult{};
  }

  /// Some modes need a reboot, for which nvpmodel asks; with no answer it leaves the mode as it is.
  ControlResult set_mode(int id) {
    if (power_mode_now(sysfs_) == id) return {};
    std::string why;
    try {
      ProcessOptions options;
      options.timeout = 30;
      const ProcessResult done = run_process({sysfs_.real(kNvpmodel).string(), "-m", std::to_string(id)}, options);
      why = done.ok() ? "it reported success" : fmt::format("exit code {}", done.exit_code);
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (power_mode_now(sysfs_) == id) return {};
    return {
        ControlStatus::failed,
        fmt::format("nvpmodel -m {} did not change the power mode ({}); it needs root, and some modes need a reboot",
                    id, why)};
  }

  ControlEnvironment environment_;
  Sysfs sysfs_;
  fs::path folder_;
  std::vector<long long> frequencies_, memory_rates_;  // Hz
  std::vector<PowerMode> modes_;
  std::optional<long long> core_, memory_;  // Hz that this control has set
};

}  // namespace

std::unique_ptr<Control> open_tegra_control(const ControlEnvironment& environment, std::string& reason) {
  const auto folder = tegra_devfreq(Sysfs(environment.sysfs_root));
  if (!folder.empty()) return std::make_unique<TegraControl>(environment, folder);
  reason = fmt::format("no Tegra GPU below {}", kDevfreq);
  return nullptr;
}

std::vector<std::string> list_tegra_controls(const ControlEnvironment& environment) {
  if (tegra_devfreq(Sysfs(environment.sysfs_root)).empty()) return {};
  return {"tegra"};
}

}  // namespace ergotune
