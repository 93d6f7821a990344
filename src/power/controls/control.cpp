#include "power/controls/control.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"

namespace ergotune {

namespace {

/// By the values of ControlQuantity: its name, and how messages call it.
constexpr std::array<std::pair<const char*, const char*>, 3> kQuantityNames = {
    {{"core_clock_mhz", "core clock"}, {"memory_clock_mhz", "memory clock"}, {"power_limit_w", "power limit"}}};

/// By the values of ControlStatus.
constexpr std::array kStatusNames = {"ok",          "not_supported", "no_permission", "invalid_value",
                                     "device_lost", "timeout",       "failed"};

}  // namespace

std::string to_string(ControlQuantity quantity) { return kQuantityNames.at(static_cast<std::size_t>(quantity)).first; }

std::optional<ControlQuantity> control_quantity_from(std::string_view name) {
  for (const auto quantity : kControlQuantities)
    if (to_string(quantity) == name) return quantity;
  return std::nullopt;
}

std::string to_string(ControlStatus status) { return kStatusNames.at(static_cast<std::size_t>(status)); }

std::string quantity_description(ControlQuantity quantity) {
  return kQuantityNames.at(static_cast<std::size_t>(quantity)).second;
}

std::string quantity_unit(ControlQuantity quantity) { return quantity == ControlQuantity::power_limit_w ? "W" : "MHz"; }

ControlResult changed_meanwhile(ControlQuantity quantity, double requested, double now) {
  const auto unit = quantity_unit(quantity);
  return {ControlStatus::failed, fmt::format("{} {:g} {} was set, but it is {:g} {}", quantity_description(quantity),
                                             requested, unit, now, unit)};
}

ControlResult foreign_step(const RestoreStep& step) {
  return {ControlStatus::invalid_value, fmt::format("{} {} is not a step of this device", step.kind, step.target)};
}

ControlRange range_of(std::vector<double> ascending) {
  ControlRange range;
  range.supported = !ascending.empty();
  if (range.supported) {
    range.low = ascending.front();
    range.high = ascending.back();
    range.default_value = range.high;
  }
  range.values = std::move(ascending);
  return range;
}

std::string error_description(ControlQuantity quantity, double value, const std::string& reason) {
  return fmt::format("{} {:g} {}: {}", quantity_description(quantity), value, quantity_unit(quantity), reason);
}

std::string Control::foreign_under_load(const std::vector<std::string>&, std::optional<double>) const { return {}; }
ControlResult Control::check(ControlQuantity, double) { return {}; }
ControlResult Control::acquire(const std::string&, bool) { return {}; }
ControlResult Control::release() { return {}; }

ControlEnvironment ControlEnvironment::from_environment() {
  ControlEnvironment environment;
  environment.nvml_library = environment_variable("ERGOTUNE_NVML");
  if (const auto root = environment_variable("ERGOTUNE_SYSFS_ROOT"); !root.empty()) environment.sysfs_root = root;
  environment.helper_socket = environment_variable("ERGOTUNE_HELPER_SOCKET");
  if (environment.helper_socket.empty()) environment.helper_socket = kHelperSocket;
  if (const auto folder = environment_variable("ERGOTUNE_STATE_DIR"); !folder.empty()) {
    environment.state_folder = folder;
  } else if (::geteuid() == 0) {
    environment.state_folder = "/var/lib/ergotune";
  } else {
    environment.state_folder = user_folder("XDG_STATE_HOME", ".local/state");
    if (environment.state_folder.empty()) environment.state_folder = ".local/state/ergotune";
  }
  // Absolute, since the guardian must use the same paths if this process changes its working directory.
  std::error_code ignored;
  environment.sysfs_root = std::filesystem::absolute(environment.sysfs_root, ignored);
  environment.state_folder = std::filesystem::absolute(environment.state_folder, ignored);
  if (environment.nvml_library.find('/') != std::string::npos)
    environment.nvml_library = std::filesystem::absolute(environment.nvml_library, ignored).string();
  return environment;
}

bool controls_forbidden() {
  const std::string text = environment_variable("ERGOTUNE_FORBID_CONTROLS");
  return !text.empty() && text != "0";
}

void require_controls_allowed() {
  if (controls_forbidden())
    throw UserError("controls are forbidden here (ERGOTUNE_FORBID_CONTROLS is set): no clock or limit is touched");
}

double nearest_value(const ControlRange& range, double value) {
  if (range.values.empty()) return std::clamp(value, range.low, range.high);
  return *std::ranges::min_element(range.values,
                                   [&](double a, double b) { return std::abs(a - value) < std::abs(b - value); });
}

ControlResult check_value(ControlQuantity quantity, const ControlRange& range, double value) {
  if (!range.supported)
    return {ControlStatus::not_supported,
            fmt::format("{} cannot be set on this device{}{}", quantity_description(quantity),
                        range.why_not.empty() ? "" : ": ", range.why_not)};
  const auto unit = quantity_unit(quantity);
  if (!std::isfinite(value))
    return {ControlStatus::invalid_value, error_description(quantity, value, "not a finite number")};
  if (range.values.empty()) {
    if (value >= range.low && value <= range.high) return {};
    return {ControlStatus::invalid_value,
            error_description(quantity, value, fmt::format("outside {:g} to {:g} {}", range.low, range.high, unit))};
  }
  const double nearest = nearest_value(range, value);
  if (std::abs(nearest - value) < 0.5) return {};
  return {ControlStatus::invalid_value,
          error_description(quantity, value,
                            fmt::format("not supported; nearest is {:g} {} (of {} from {:g} to {:g})", nearest, unit,
                                        range.values.size(), range.values.front(), range.values.back()))};
}

bool same_clock(double requested_mhz, double ran_mhz, double tolerance) {
  constexpr double kHalfStep = 7.5;  // NVIDIA clocks come in steps of 15 MHz
  return std::abs(requested_mhz - ran_mhz) <= std::max(tolerance * requested_mhz, kHalfStep);
}

std::string describe_clock_outcome(double requested_mhz, double ran_mhz, const std::vector<std::string>& reasons,
                                   double tolerance) {
  if (!(requested_mhz > 0) || !std::isfinite(ran_mhz) || same_clock(requested_mhz, ran_mhz, tolerance)) return {};
  std::string description = fmt::format("asked {:.0f} MHz, ran {:.0f} MHz", requested_mhz, ran_mhz);
  if (ran_mhz > requested_mhz) return description;
  for (auto reason : reasons) {
    std::ranges::replace(reason, '_', ' ');
    description += ", " + reason;
  }
  return description;
}

std::vector<std::string> list_controls() { return list_controls(ControlEnvironment::from_environment()); }

std::vector<std::string> list_controls(const ControlEnvironment& environment) {
  std::vector<std::string> ids;
  for (const auto& list : {list_nvml_controls, list_tegra_controls, list_amdgpu_controls, list_cpufreq_controls}) {
    try {
      for (auto& id : list(environment)) ids.push_back(std::move(id));
    } catch (const std::exception&) {
      // A driver whose enumeration fails offers no controls.
    }
  }
  return ids;
}

std::unique_ptr<Control> open_control(const std::string& id) {
  return open_control(id, ControlEnvironment::from_environment());
}

std::unique_ptr<Control> open_control(const std::string& id, const ControlEnvironment& environment) {
  require_controls_allowed();
  std::string reason;
  std::unique_ptr<Control> control;
  if (id == "nvml" || id.starts_with("nvml:"))
    control = open_nvml_control(id, environment, reason);
  else if (id == "tegra")
    control = open_tegra_control(environment, reason);
  else if (id == "amdgpu" || id.starts_with("amdgpu:"))
    control = open_amdgpu_control(id, environment, reason);
  else if (id == "cpufreq")
    control = open_cpufreq_control(environment, reason);
  else
    reason = "controls are named nvml:N, tegra, amdgpu:cardN, cpufreq";
  if (control) return control;
  if (reason.empty()) reason = "the driver gives no reason";
  const auto here = list_controls(environment);
  if (std::ranges::find(here, id) != here.end())
    throw UserError(fmt::format("control \"{}\" cannot be opened: {}", id, reason));
  throw UserError(fmt::format("no control \"{}\": {}{}", id, reason,
                              here.empty() ? "; there is no control on this machine" : suggestion(id, here)));
}

std::unique_ptr<Control> usable_control(const std::string& id, std::string* why_not) {
  const auto environment = ControlEnvironment::from_environment();
  require_controls_allowed();
  auto direct = open_control(id, environment);
  std::string helper_reason;
  const std::string key = direct->device_key();
  if (auto helped = open_helper_control(key, environment, helper_reason, direct)) return helped;
  if (direct->permitted()) return direct;
  if (why_not)
    *why_not = fmt::format(
        "{}: clocks and limits stay as they are: setting them needs root (CAP_SYS_ADMIN or write access to the "
        "device's files), or the helper ergotuned with a policy that lists you ({})",
        direct->id(), helper_reason);
  return nullptr;
}

std::unique_ptr<Control> control_for_device(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                                            std::string* why_not) {
  if (controls_forbidden()) {
    if (why_not) *why_not = "controls are forbidden here (ERGOTUNE_FORBID_CONTROLS is set)";
    return nullptr;
  }
  const auto environment = ControlEnvironment::from_environment();
  const std::string id = find_control(uuid, pci_address, is_cpu, environment);
  if (id.empty()) {
    if (why_not) *why_not = "no clock or power control was found for this device";
    return nullptr;
  }
  try {
    return usable_control(id, why_not);
  } catch (const UserError& error) {
    if (why_not) *why_not = error.what();
    return nullptr;
  }
}

std::string find_control(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                         const ControlEnvironment& environment) {
  if (is_cpu) {
    const auto ids = list_cpufreq_controls(environment);
    return ids.empty() ? "" : ids.front();
  }
  if (auto id = find_nvml_control(uuid, pci_address, environment); !id.empty()) return id;
  if (auto id = find_amdgpu_control(pci_address, environment); !id.empty()) return id;
  // A Jetson's GPU has no UUID or PCI address in sysfs; there is only one.
  const auto ids = list_tegra_controls(environment);
  return ids.empty() ? "" : ids.front();
}

std::vector<std::size_t> order_by_setting(const std::vector<ControlSetting>& settings, const ControlSetting& current) {
  // Greedy: continue with the setting that changes least from the present one, slowest quantity first. Equal settings
  // cost nothing and stay together, and all settings with one memory clock are done before the next.
  constexpr std::array levels = {ControlQuantity::memory_clock_mhz, ControlQuantity::power_limit_w,
                                 ControlQuantity::core_clock_mhz};
  std::map<ControlSetting, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < settings.size(); ++i) groups[settings[i]].push_back(i);
  const auto cost = [&](const ControlSetting& from, const ControlSetting& to) {
    std::array<int, levels.size()> changed{};
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const auto a = from.find(levels[i]), b = to.find(levels[i]);
      changed[i] = b != to.end() && (a == from.end() || a->second != b->second);
    }
    return changed;
  };
  std::vector<std::size_t> order;
  ControlSetting here = current;
  while (!groups.empty()) {
    auto next = std::ranges::min_element(groups, [&](const auto& a, const auto& b) {
      return std::pair{cost(here, a.first), a.second.front()} < std::pair{cost(here, b.first), b.second.front()};
    });
    order.insert(order.end(), next->second.begin(), next->second.end());
    here = next->first;
    groups.erase(next);
  }
  return order;
}

}  // namespace ergotune
