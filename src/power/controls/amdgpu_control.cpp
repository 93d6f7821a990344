// AMD GPUs through the amdgpu driver's files. Clocks are levels: performance level "manual", then the number of the
// only allowed level. Instinct GPUs from the MI200 on have few levels but accept any maximum: performance level
// "perf_determinism", then the highest clock that the firmware may choose. The power limit is a hwmon file in
// microwatts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include "power/controls/control_backends.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {
namespace {

constexpr const char* kLevelsStep = "amdgpu-levels";
constexpr const char* kCeilingStep = "amdgpu-ceiling";
constexpr const char* kCeilingLevel = "perf_determinism";
constexpr double kCeilingStepMhz = 50;

struct Level {
  int number;
  double mhz;
};

// Parses "0: 300Mhz", "1: 608Mhz *"; the line "S: 19Mhz *" is a sleep state, not a level.
std::vector<Level> parse_levels(const std::string& text) {
  std::vector<Level> levels;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Level level{};
    if (std::sscanf(line.c_str(), " %d: %lf", &level.number, &level.mhz) == 2 && level.mhz > 0) levels.push_back(level);
  }
  return levels;
}

/// True for MI200 and MI300 GPUs (by AMD's device ids), which have performance determinism.
bool has_ceiling(const Sysfs& sysfs, const DrmDevice& card) {
  const std::string text = sysfs.read(card.device / "uevent").value_or("");
  const auto at = text.find("PCI_ID=1002:");
  unsigned number = 0;
  if (at == std::string::npos || std::sscanf(text.c_str() + at, "PCI_ID=1002:%x", &number) != 1) return false;
  return (number >= 0x7408 && number <= 0x740f) || (number >= 0x74a0 && number <= 0x74bf);
}

/// Returns the devices whose levels can be set.
std::vector<DrmDevice> find_drm_devices(const Sysfs& sysfs) {
  auto cards = drm_devices(sysfs);
  std::erase_if(
      cards, [&](const DrmDevice& card) { return !sysfs.exists(card.device / "power_dpm_force_performance_level"); });
  return cards;
}

class AmdgpuControl final : public Control {
 public:
  AmdgpuControl(ControlEnvironment environment, const DrmDevice& card)
      : environment_(std::move(environment)), sysfs_(environment_.sysfs_root), card_(card.name), folder_(card.device) {
    core_ = parse_levels(sysfs_.read(core_file()).value_or(""));
    memory_ = parse_levels(sysfs_.read(memory_file()).value_or(""));
    for (const auto& entry : sysfs_.list(folder_ / "hwmon"))
      if (sysfs_.exists(folder_ / "hwmon" / entry / "power1_cap")) cap_ = folder_ / "hwmon" / entry / "power1_cap";
    ceiling_ = !core_.empty() && has_ceiling(sysfs_, card) && sysfs_.exists(ceiling_file());
  }

  std::string id() const override { return "amdgpu:" + card_; }
  std::string device_key() const override { return folder_.string(); }
  ControlEnvironment environment() const override { return environment_; }

  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    if (quantity == ControlQuantity::power_limit_w) {
      if (cap_.empty()) return range;
      const auto watts = [&](const char* suffix) -> std::optional<double> {
        const auto microwatts = sysfs_.read_integer(cap_.string() + suffix);
        return microwatts ? std::optional(static_cast<double>(*microwatts) / 1e6) : std::nullopt;
      };
      range.current = watts("");
      range.high = watts("_max").value_or(range.current.value_or(0));
      range.low = watts("_min").value_or(0);
      range.default_value = watts("_default").value_or(range.high);
      range.supported = range.current.has_value() && range.high > range.low;
      return range;
    }
    if (ceiling_ && quantity == ControlQuantity::core_clock_mhz) return ceiling_range();
    if (ceiling_) {
      range.why_not = "this GPU takes a ceiling of the core clock or levels of the memory clock, not both";
      return range;
    }
    std::set<double> clocks;
    for (const auto& level : levels(quantity)) clocks.insert(level.mhz);
    return range_of({clocks.begin(), clocks.end()});
  }

  std::vector<double> core_clocks_at(double) override { return range(ControlQuantity::core_clock_mhz).values; }
  bool permitted() override { return writable(sysfs_, level_file()); }

  std::string external_lock_sign() override {
    const auto level = sysfs_.read(level_file()).value_or("");
    if (level != "manual" && level != kCeilingLevel) return {};
    if (level == kCeilingLevel && ceiling_ && ceiling_now()) return {};
    return fmt::format("{} is \"{}\": clock levels were chosen by hand, and which ones cannot be read back",
                       level_file().string(), level);
  }

  std::vector<RestoreStep> snapshot() override {
    std::vector<RestoreStep> steps;
    if (!cap_.empty()) snapshot_text(sysfs_, cap_, steps);
    // The driver reports the active level, not the allowed ones: all are allowed unless levels were set manually.
    const auto all = [](const std::vector<Level>& levels) {
      std::vector<int> numbers;
      for (const auto& level : levels) numbers.push_back(level.number);
      return fmt::format("{}", fmt::join(numbers, " "));
    };
    if (!core_.empty())
      steps.push_back({kLevelsStep, core_file().string(), all(core_), ControlQuantity::core_clock_mhz});
    if (!memory_.empty())
      steps.push_back({kLevelsStep, memory_file().string(), all(memory_), ControlQuantity::memory_clock_mhz});
    // Last, since levels can only be written in manual mode, and "auto" allows all of them.
    snapshot_text(sysfs_, level_file(), steps);
    if (ceiling_ && sysfs_.read(level_file()) == kCeilingLevel && ceiling_now())
      steps.push_back({kCeilingStep, ceiling_file().string(), fmt::format("{:.0f}", *ceiling_now()),
                       ControlQuantity::core_clock_mhz});
    return steps;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) return checked;
    if (quantity == ControlQuantity::power_limit_w)
      return write_file(sysfs_, cap_, std::to_string(std::llround(value * 1e6)));
    if (ceiling_) return set_ceiling(value);
    if (sysfs_.read(level_file()) != "manual")
      if (auto result = write_file(sysfs_, level_file(), "manual"); !result.ok()) return result;
    const auto& list = levels(quantity);
    const auto level = std::ranges::min_element(
        list, [&](const Level& a, const Level& b) { return std::abs(a.mhz - value) < std::abs(b.mhz - value); });
    return write_file(sysfs_, file(quantity), std::to_string(level->number));
  }

  /// The firmware stays slightly below a level's nominal clock.
  double clock_tolerance() const override { return 0.05; }

  ControlResult check(ControlQuantity quantity, double value) override {
    if (quantity == ControlQuantity::power_limit_w) {
      const auto now = cap_.empty() ? std::nullopt : sysfs_.read_integer(cap_);
      // The driver rounds to whole watts.
      if (!now || std::abs(static_cast<double>(*now) * 1e-6 - value) <= 1) return {};
      return changed_meanwhile(quantity, value, static_cast<double>(*now) * 1e-6);
    }
    if (const auto now = ceiling_ ? ceiling_now() : std::nullopt; now && std::abs(*now - value) > 1)
      return changed_meanwhile(quantity, value, *now);
    // The allowed levels cannot be read, but the manual mode can.
    const auto level = sysfs_.read(level_file());
    const char* wanted = ceiling_ ? kCeilingLevel : "manual";
    if (!level || *level == wanted) return {};
    return {ControlStatus::failed,
            fmt::format("{} {:g} MHz was set, but {} is \"{}\" and no more \"{}\"", quantity_description(quantity),
                        value, level_file().string(), *level, wanted)};
  }

  ControlResult restore(const RestoreStep& step) override {
    if (step.kind == kSysfsStep && !cap_.empty() && step.target == cap_) return restore_text(sysfs_, cap_, step.value);
    if (step.kind == kSysfsStep && step.target == level_file()) return restore_text(sysfs_, level_file(), step.value);
    if (step.kind == kLevelsStep && (step.target == core_file() || step.target == memory_file())) {
      for (const char c : step.value)
        if (c != ' ' && (c < '0' || c > '9'))
          return {ControlStatus::invalid_value, fmt::format("\"{}\" are not level numbers", step.value)};
      // In other modes the driver already chooses among all levels.
      if (sysfs_.read(level_file()) != "manual") return {};
      return write_file(sysfs_, step.target, step.value);
    }
    if (step.kind == kCeilingStep && ceiling_ && step.target == ceiling_file()) {
      const double mhz = std::atof(step.value.c_str());
      if (!(mhz > 0 && mhz < 10000))
        return {ControlStatus::invalid_value, fmt::format("\"{}\" is not a clock", step.value)};
      // Any other performance level has already removed the maximum.
      return sysfs_.read(level_file()) == kCeilingLevel ? set_ceiling(mhz) : ControlResult();
    }
    return foreign_step(step);
  }

 private:
  ControlRange ceiling_range() const {
    const auto [low, high] = std::ranges::minmax(core_, {}, &Level::mhz);
    std::vector<double> clocks;
    for (double mhz = low.mhz; mhz < high.mhz; mhz += kCeilingStepMhz) clocks.push_back(mhz);
    clocks.push_back(high.mhz);
    ControlRange range = range_of(std::move(clocks));
    if (sysfs_.read(level_file()) == kCeilingLevel) range.current = ceiling_now();
    return range;
  }
  /// Parses "OD_SCLK:", "0: 500Mhz", "1: 1700Mhz"; the second value is the maximum.
  std::optional<double> ceiling_now() const {
    const std::string text = sysfs_.read(ceiling_file()).value_or("");
    const auto at = text.find("OD_SCLK:");
    if (at == std::string::npos) return std::nullopt;
    const std::vector<Level> bounds = parse_levels(text.substr(at, text.find("OD_", at + 1) - at));
    return bounds.size() == 2 ? std::optional(bounds[1].mhz) : std::nullopt;
  }
  ControlResult set_ceiling(double mhz) {
    if (sysfs_.read(level_file()) != kCeilingLevel)
      if (auto result = write_file(sysfs_, level_file(), kCeilingLevel); !result.ok()) return result;
    if (auto result = write_file(sysfs_, ceiling_file(), fmt::format("s 1 {:.0f}", mhz)); !result.ok()) return result;
    return write_file(sysfs_, ceiling_file(), "c");
  }

  std::filesystem::path level_file() const { return folder_ / "power_dpm_force_performance_level"; }
  std::filesystem::path core_file() const { return folder_ / "pp_dpm_sclk"; }
  std::filesystem::path memory_file() const { return folder_ / "pp_dpm_mclk"; }
  std::filesystem::path ceiling_file() const { return folder_ / "pp_od_clk_voltage"; }
  std::filesystem::path file(ControlQuantity quantity) const {
    return quantity == ControlQuantity::memory_clock_mhz ? memory_file() : core_file();
  }
  const std::vector<Level>& levels(ControlQuantity quantity) const {
    return quantity == ControlQuantity::memory_clock_mhz ? memory_ : core_;
  }

  ControlEnvironment environment_;
  Sysfs sysfs_;
  std::string card_;
  std::filesystem::path folder_, cap_;
  std::vector<Level> core_, memory_;
  bool ceiling_{};
};

}  // namespace

std::unique_ptr<Control> open_amdgpu_control(const std::string& id, const ControlEnvironment& environment,
                                             std::string& reason) {
  for (const auto& card : find_drm_devices(Sysfs(environment.sysfs_root)))
    if (id == "amdgpu" || id == "amdgpu:" + card.name) return std::make_unique<AmdgpuControl>(environment, card);
  reason = fmt::format("no such amdgpu device below {}", kDrm);
  return nullptr;
}

std::vector<std::string> list_amdgpu_controls(const ControlEnvironment& environment) {
  std::vector<std::string> ids;
  for (const auto& card : find_drm_devices(Sysfs(environment.sysfs_root))) ids.push_back("amdgpu:" + card.name);
  return ids;
}

std::string find_amdgpu_control(const std::string& pci_address, const ControlEnvironment& environment) {
  const auto cards = find_drm_devices(Sysfs(environment.sysfs_root));
  const DrmDevice* card = card_at(cards, pci_address);
  return card ? "amdgpu:" + card->name : "";
}

}  // namespace ergotune
