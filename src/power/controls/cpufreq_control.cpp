// The CPU's clock, through cpufreq policies: min = max fixes a policy. The governor is set to "performance" if there is
// one, since some drivers' "powersave" ignores a raised minimum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/sysfs.hpp"
#include "power/controls/control_backends.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {
namespace {

constexpr std::string_view kCpufreq = "/sys/devices/system/cpu/cpufreq";
constexpr std::string_view kCpus = "/sys/devices/system/cpu";

struct Policy {
  std::filesystem::path folder;
  long long lowest, highest;         // kHz, hardware limits
  std::vector<long long> available;  // kHz, ascending; empty: the driver lists none

  FrequencyFiles files() const { return {folder / "scaling_min_freq", folder / "scaling_max_freq"}; }
  std::filesystem::path governor() const { return folder / "scaling_governor"; }
};

std::vector<Policy> find_policies(const Sysfs& sysfs) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : sysfs.list(kCpufreq))
    if (entry.starts_with("policy")) folders.push_back(std::filesystem::path(kCpufreq) / entry);
  if (folders.empty()) {  // Linux before 4.3 has one folder per CPU
    for (const auto& entry : sysfs.list(kCpus))
      if (entry.starts_with("cpu") && sysfs.exists(std::filesystem::path(kCpus) / entry / "cpufreq/scaling_min_freq"))
        folders.push_back(std::filesystem::path(kCpus) / entry / "cpufreq");
  }
  std::vector<Policy> policies;
  for (const auto& folder : folders) {
    const auto low = sysfs.read_integer(folder / "cpuinfo_min_freq");
    const auto high = sysfs.read_integer(folder / "cpuinfo_max_freq");
    if (!low || !high || *low > *high || !sysfs.exists(folder / "scaling_min_freq")) continue;
    policies.push_back(
        {folder, *low, *high, parse_numbers(sysfs.read(folder / "scaling_available_frequencies").value_or(""))});
  }
  return policies;
}

class CpufreqControl final : public Control {
 public:
  CpufreqControl(ControlEnvironment environment, std::vector<Policy> policies)
      : environment_(std::move(environment)), sysfs_(environment_.sysfs_root), policies_(std::move(policies)) {}

  std::string id() const override { return "cpufreq"; }
  std::string device_key() const override { return std::string(kCpufreq); }
  ControlEnvironment environment() const override { return environment_; }

  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    if (quantity != ControlQuantity::core_clock_mhz) return range;
    range.supported = true;
    // The intersection of all policies, so that CPUs with different cores use the range that they share.
    long long low = policies_.front().lowest, high = policies_.front().highest;
    std::vector<long long> shared = policies_.front().available;
    for (const auto& policy : policies_) {
      low = std::max(low, policy.lowest);
      high = std::min(high, policy.highest);
      std::vector<long long> both;
      std::set_intersection(shared.begin(), shared.end(), policy.available.begin(), policy.available.end(),
                            std::back_inserter(both));
      shared = std::move(both);
    }
    range.low = static_cast<double>(low) / 1e3;
    range.high = static_cast<double>(high) / 1e3;
    for (const long long khz : shared) range.values.push_back(static_cast<double>(khz) / 1e3);
    if (low > high) range.supported = false;
    range.default_value = range.high;
    if (const auto now = read_range(sysfs_, policies_.front().files()); now && now->low == now->high)
      range.current = static_cast<double>(now->high) / 1e3;
    return range;
  }

  std::vector<double> core_clocks_at(double) override { return range(ControlQuantity::core_clock_mhz).values; }

  bool permitted() override {
    return std::ranges::all_of(policies_, [&](const Policy& policy) {
      return writable(sysfs_, policy.files().min) && writable(sysfs_, policy.files().max);
    });
  }

  std::string external_lock_sign() override { return {}; }  // all settings can be read, and so restored

  std::vector<RestoreStep> snapshot() override {
    std::vector<RestoreStep> steps;
    for (const auto& policy : policies_) {
      snapshot_text(sysfs_, policy.governor(), steps);
      snapshot_range(sysfs_, policy.files(), steps);
    }
    return steps;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) return checked;
    const auto khz = std::llround(value * 1e3);
    ControlResult worst;
    for (const auto& policy : policies_) {
      const auto governors = sysfs_.read(policy.folder / "scaling_available_governors").value_or("");
      const auto governor = sysfs_.read(policy.governor());
      if (governor && *governor != "performance" && governors.find("performance") != std::string::npos)
        if (auto result = write_file(sysfs_, policy.governor(), "performance"); !result.ok()) worst = result;
      if (auto result = write_range(sysfs_, policy.files(), khz, khz); !result.ok()) worst = result;
    }
    return worst;
  }

  /// The clock of a core under load is measured over one tick.
  double clock_tolerance() const override { return 0.03; }

  ControlResult check(ControlQuantity quantity, double value) override {
    if (quantity != ControlQuantity::core_clock_mhz) return {};
    for (const auto& policy : policies_) {
      const auto set = read_range(sysfs_, policy.files());
      if (!set) continue;
      // Drivers without a list round to hardware steps of at most 100 MHz.
      const double step = policy.available.empty() ? 51 : 0.5;
      for (const long long now : {set->low, set->high})
        if (std::abs(static_cast<double>(now) * 1e-3 - value) > step)
          return changed_meanwhile(quantity, value, static_cast<double>(now) * 1e-3);
    }
    return {};
  }

  ControlResult restore(const RestoreStep& step) override {
    for (const auto& policy : policies_) {
      if (step.kind == kFrequencyRangeStep && step.target == policy.files().min)
        return restore_range(sysfs_, policy.files(), step.value);
      if (step.kind == kSysfsStep && step.target == policy.governor())
        return restore_text(sysfs_, policy.governor(), step.value);
    }
    return foreign_step(step);
  }

 private:
  ControlEnvironment environment_;
  Sysfs sysfs_;
  std::vector<Policy> policies_;
};

/// Reports the clock of the fastest core: a kernel runs on some cores, and idle ones have low clocks.
class CpufreqMonitor : public DeviceMonitor {
 public:
  CpufreqMonitor(Sysfs sysfs, std::vector<Policy> policies)
      : sysfs_(std::move(sysfs)), policies_(std::move(policies)) {}
  DeviceState read() override {
    DeviceState state;
    for (const auto& policy : policies_) {
      const auto khz = sysfs_.read_integer(policy.folder / "scaling_cur_freq");
      if (!khz || *khz <= 0) continue;
      state.core_clock_mhz = std::max(state.core_clock_mhz.value_or(0), static_cast<double>(*khz) * 1e-3);
    }
    return state;
  }

 private:
  Sysfs sysfs_;
  std::vector<Policy> policies_;
};

}  // namespace

std::unique_ptr<DeviceMonitor> make_cpufreq_monitor() {
  const auto sysfs = Sysfs::from_environment();
  auto policies = find_policies(sysfs);
  return policies.empty() ? nullptr : std::make_unique<CpufreqMonitor>(sysfs, std::move(policies));
}

std::unique_ptr<Control> open_cpufreq_control(const ControlEnvironment& environment, std::string& reason) {
  auto policies = find_policies(Sysfs(environment.sysfs_root));
  if (!policies.empty()) return std::make_unique<CpufreqControl>(environment, std::move(policies));
  reason = fmt::format("no frequency policies below {} (a virtual machine usually has none)", kCpufreq);
  return nullptr;
}

std::vector<std::string> list_cpufreq_controls(const ControlEnvironment& environment) {
  if (find_policies(Sysfs(environment.sysfs_root)).empty()) return {};
  return {"cpufreq"};
}

}  // namespace ergotune
