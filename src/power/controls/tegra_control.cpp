// The GPU clock of a Jetson (Tegra) through devfreq. min = max fixes the clock; railgating is disabled first, because a
// railgated GPU loses its clock setting.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "power/controls/control_backends.hpp"
#include "power/controls/control_sysfs.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {
namespace {

class TegraControl final : public Control {
 public:
  TegraControl(ControlEnvironment environment, std::filesystem::path folder)
      : environment_(std::move(environment)), sysfs_(environment_.sysfs_root), folder_(std::move(folder)) {
    for (const long long hertz : parse_numbers(sysfs_.read(folder_ / "available_frequencies").value_or("")))
      if (hertz > 0) frequencies_.push_back(hertz);
  }

  std::string id() const override { return "tegra"; }
  std::string device_key() const override { return folder_.string(); }
  ControlEnvironment environment() const override { return environment_; }

  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    if (quantity != ControlQuantity::core_clock_mhz || frequencies_.empty()) return range;
    range.supported = true;
    for (const long long hertz : frequencies_) range.values.push_back(static_cast<double>(hertz) / 1e6);
    range.low = range.values.front();
    range.high = range.values.back();
    range.default_value = range.high;
    if (const auto now = read_range(sysfs_, files()); now && now->low == now->high)
      range.current = static_cast<double>(now->high) / 1e6;
    return range;
  }

  std::vector<double> core_clocks_at(double) override { return range(ControlQuantity::core_clock_mhz).values; }
  bool permitted() override { return writable(sysfs_, files().min) && writable(sysfs_, files().max); }
  std::string foreign_setting() override { return {}; }  // all settings can be read, and so restored

  std::vector<RestoreStep> snapshot() override {
    std::vector<RestoreStep> steps;
    snapshot_range(sysfs_, files(), steps);
    snapshot_text(sysfs_, railgate(), steps);
    return steps;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) return checked;
    // Values are exact in Hz; MHz contain at most a rounding error.
    const long long hertz = *std::min_element(frequencies_.begin(), frequencies_.end(), [&](long long a, long long b) {
      return std::abs(static_cast<double>(a) - value * 1e6) < std::abs(static_cast<double>(b) - value * 1e6);
    });
    if (const auto gate = sysfs_.read(railgate()); gate && *gate != "0")
      if (auto result = write_file(sysfs_, railgate(), "0"); !result.ok()) return result;
    return write_range(sysfs_, files(), hertz, hertz);
  }

  ControlResult check(ControlQuantity quantity, double value) override {
    const auto set = read_range(sysfs_, files());
    if (quantity != ControlQuantity::core_clock_mhz || !set) return {};
    // Exact in Hz up to the rounding of MHz.
    for (const long long now : {set->low, set->high})
      if (std::abs(static_cast<double>(now) * 1e-6 - value) > 0.5)
        return changed_meanwhile(quantity, value, static_cast<double>(now) * 1e-6);
    return {};
  }

  ControlResult restore(const RestoreStep& step) override {
    if (step.kind == kFrequencyRangeStep && step.target == files().min)
      return restore_range(sysfs_, files(), step.value);
    if (step.kind == kSysfsStep && step.target == railgate()) return restore_text(sysfs_, railgate(), step.value);
    return {ControlStatus::invalid_value, fmt::format("{} {} is not a step of this device", step.kind, step.target)};
  }

 private:
  FrequencyFiles files() const { return {folder_ / "min_freq", folder_ / "max_freq"}; }
  std::filesystem::path railgate() const { return folder_ / "device/railgate_enable"; }

  ControlEnvironment environment_;
  Sysfs sysfs_;
  std::filesystem::path folder_;
  std::vector<long long> frequencies_;  // Hz
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
