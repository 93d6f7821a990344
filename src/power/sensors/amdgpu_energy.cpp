#include "power/sensors/amdgpu_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

#include "base/files.hpp"

namespace ergotune {
namespace {

constexpr double kEnergyUnit = 1.0 / 65536;  // J
constexpr std::size_t kNone = 0;             // offset 0 is in the header and means that there is no such field

/// Offsets of the fields of a layout, and its minimum size (partitions may follow).
struct Layout {
  int format, content;
  std::size_t bytes;
  std::size_t energy, taken, power, core_clock;
  std::size_t throttle_status = kNone, residency = kNone;
  bool averaged = false;
};

/// The first revisions, which differ in their length and in what they say of throttling.
constexpr Layout early(int content, std::size_t bytes, std::size_t throttle_status = kNone) {
  return {1, content, bytes, 24, 32, 22, 54, throttle_status, kNone, true};
}

constexpr auto kLayouts = std::to_array<Layout>({
    early(1, 96),
    early(2, 104),
    early(3, 120, 112),
    {1, 4, 288, 24, 32, 10, 240},
    {1, 5, 360, 88, 96, 10, 312},
    {1, 6, 320, 16, 24, 10, 264, kNone, 32},
});

/// Returns a number of the table; nullopt if the GPU does not fill it.
template <class T>
std::optional<T> field(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  if (value == std::numeric_limits<T>::max()) return std::nullopt;
  return value;
}

std::optional<ThrottleResidency> residency_at(std::string_view bytes, std::size_t offset) {
  const auto cycles = field<std::uint32_t>(bytes, offset);
  if (!cycles) return std::nullopt;
  const auto counter = [&](std::size_t i) { return field<std::uint32_t>(bytes, offset + 4 * i).value_or(0); };
  return ThrottleResidency{*cycles, counter(1), counter(2), counter(3), counter(4), counter(5)};
}

}  // namespace

std::optional<GpuMetrics> read_gpu_metrics(std::string_view bytes, std::string& reason) {
  if (bytes.size() < 4) {
    reason = "it is empty";
    return std::nullopt;
  }
  const std::size_t stated = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  const int format = static_cast<unsigned char>(bytes[2]), content = static_cast<unsigned char>(bytes[3]);
  GpuMetrics metrics;
  metrics.revision = fmt::format("{}.{}", format, content);
  if (stated != bytes.size()) {
    reason = fmt::format("it has {} bytes and its header gives {}", bytes.size(), stated);
    return std::nullopt;
  }
  const auto layout = std::ranges::find_if(
      kLayouts, [&](const Layout& known) { return known.format == format && known.content == content; });
  if (layout == kLayouts.end()) {
    reason = fmt::format("revision {} is none that is known to count energy", metrics.revision);
    return std::nullopt;
  }
  if (stated < layout->bytes) {
    reason =
        fmt::format("a table of revision {} has {} bytes, and this one {}", metrics.revision, layout->bytes, stated);
    return std::nullopt;
  }
  if (const auto units = field<std::uint64_t>(bytes, layout->energy))
    metrics.energy = kEnergyUnit * static_cast<double>(*units);
  if (const auto ns = field<std::uint64_t>(bytes, layout->taken)) metrics.taken = 1e-9 * static_cast<double>(*ns);
  if (const auto watts = field<std::uint16_t>(bytes, layout->power)) metrics.socket_power_w = *watts;
  if (const auto mhz = field<std::uint16_t>(bytes, layout->core_clock)) metrics.core_clock_mhz = *mhz;
  metrics.power_is_averaged = layout->averaged;
  if (layout->throttle_status != kNone) metrics.throttle_status = field<std::uint64_t>(bytes, layout->throttle_status);
  if (layout->residency != kNone) metrics.residency = residency_at(bytes, layout->residency);
  return metrics;
}

namespace {

std::filesystem::path metrics_file(const DrmDevice& card) { return card.device / "gpu_metrics"; }

/// s since the machine was started, including suspended time.
double boot_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class AmdgpuEnergy final : public SysfsSensor {
 public:
  AmdgpuEnergy(const Sysfs& sysfs, SensorInfo info, DrmDevice card)
      : SysfsSensor(sysfs, std::move(info)), card_(std::move(card)) {}

  ReadStatus read(std::vector<Reading>& out) override {
    const double before = host_seconds();
    std::string reason;
    const auto metrics = read_gpu_metrics(sysfs_, card_, reason);
    const double after = host_seconds();
    if (!metrics) return fail(metrics_file(card_).string() + ": " + reason);
    if (!metrics->energy) return fail(fmt::format("{} no longer counts energy", metrics_file(card_).string()));
    const double joules = *metrics->energy;
    if (joules < last_) {
      const std::string why = fmt::format("{} went back from {:.1f} to {:.1f} J: the GPU was reset",
                                          metrics_file(card_).string(), last_, joules);
      last_ = joules;
      return fail(why);
    }
    last_ = joules;
    double time = 0.5 * (before + after);
    // The driver caches a table for a millisecond and reports its time. Some firmware reports implausible times, which
    // are ignored.
    if (metrics->taken)
      if (const double taken = *metrics->taken - offset_from_host(boot_seconds); taken > before - 0.05 && taken < after)
        time = taken;
    // a counter has a gain but no offset
    out.push_back({time, info_.gain * joules});
    return ReadStatus::ok;
  }

 private:
  DrmDevice card_;
  double last_ = 0;
};

struct Throttler {
  int bit;
  const char* reason;
};
/// Meaning of the bits of throttle_status: from each listed bit up to the next.
constexpr auto kThrottlers = std::to_array<Throttler>(
    {{0, "power_cap"}, {16, "current_limit"}, {32, "thermal"}, {46, "hardware_slowdown"}, {48, "other"}});

std::vector<std::string> reasons_in(std::uint64_t status) {
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i + 1 < kThrottlers.size(); ++i) {
    const int first = kThrottlers[i].bit, end = kThrottlers[i + 1].bit;
    const std::uint64_t mask = ((std::uint64_t{1} << end) - 1) & ~((std::uint64_t{1} << first) - 1);
    if (status & mask) reasons.emplace_back(kThrottlers[i].reason);
  }
  return reasons;
}

}  // namespace

std::optional<GpuMetrics> read_gpu_metrics(const Sysfs& sysfs, const DrmDevice& card, std::string& reason) {
  const auto bytes = read_file(sysfs.real(metrics_file(card)));
  if (!bytes) {
    reason = "it cannot be read";
    return std::nullopt;
  }
  return read_gpu_metrics(*bytes, reason);
}

std::vector<SensorInfo> list_amdgpu_energy(const Sysfs& sysfs, std::vector<std::string>& notes) {
  std::vector<SensorInfo> found;
  bool silent_die = false;
  for (const DrmDevice& card : drm_devices(sysfs)) {
    if (!sysfs.exists(metrics_file(card))) continue;
    const auto missing = [&](const std::string& why) {
      notes.push_back(fmt::format("amdgpu: {} gives no energy: {}", metrics_file(card).string(), why));
    };
    std::string reason;
    const auto metrics = read_gpu_metrics(sysfs, card, reason);
    if (!metrics) {
      missing(reason);
    } else if (!metrics->energy) {
      missing("its GPU leaves the counter empty");
    } else if (*metrics->energy <= 0) {
      silent_die = true;
      missing(
          "its counter reads 0 J, as on a GPU of two dies, whose first die counts for both: measure there, with this "
          "one idle");
    } else {
      SensorInfo info;
      info.id = "amdgpu:" + card.name + "/energy";
      info.name = fmt::format("amdgpu {} energy counter (gpu_metrics {})", card.name, metrics->revision);
      info.kind = SensorKind::cumulative_energy;
      info.scope = SensorScope::gpu;
      info.pci_address = card.pci_address;
      info.driver = "amdgpu";
      info.unit_step = 1.0 / 65536;
      info.update_period = 1e-3;  // of the firmware; the driver caches a table as long
      found.push_back(std::move(info));
    }
  }
  if (silent_die)
    for (SensorInfo& info : found) info.name += ", of the whole GPU where that has two dies";
  return found;
}

std::unique_ptr<Sensor> open_amdgpu_energy(const Sysfs& sysfs, const SensorInfo& info, const DrmDevice& card) {
  return std::make_unique<AmdgpuEnergy>(sysfs, info, card);
}

void AmdgpuThrottle::note(const GpuMetrics& metrics, DeviceState& state) {
  if (metrics.throttle_status)
    for (std::string& reason : reasons_in(*metrics.throttle_status)) state.clock_reasons.push_back(std::move(reason));
  const auto last = std::exchange(last_, metrics.residency);
  if (!last || !metrics.residency) return;
  const ThrottleResidency& now = *metrics.residency;
  const std::uint32_t cycles = now.cycles - last->cycles;  // correct across wraps
  if (cycles == 0) return;
  double most = 0;
  const auto held = [&](std::uint32_t to, std::uint32_t from, const char* reason) {
    const double share = std::min(1.0, static_cast<double>(to - from) / cycles);
    most = std::max(most, share);
    const bool known = std::ranges::find(state.clock_reasons, reason) != state.clock_reasons.end();
    if (share > 0.02 && !known) state.clock_reasons.emplace_back(reason);
  };
  held(now.power, last->power, "power_cap");
  held(now.chip_thermal, last->chip_thermal, "thermal");
  held(now.regulator_thermal, last->regulator_thermal, "thermal");
  held(now.memory_thermal, last->memory_thermal, "thermal");
  held(now.external, last->external, "hardware_slowdown");
  state.throttled_share = most;
}

}  // namespace ergotune
