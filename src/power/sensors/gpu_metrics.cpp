#include "power/sensors/gpu_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

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
  const std::size_t said = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  const int format = static_cast<unsigned char>(bytes[2]), content = static_cast<unsigned char>(bytes[3]);
  GpuMetrics metrics;
  metrics.revision = fmt::format("{}.{}", format, content);
  if (said != bytes.size()) {
    reason = fmt::format("it has {} bytes and its header gives {}", bytes.size(), said);
    return std::nullopt;
  }
  const auto layout = std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& known) {
    return known.format == format && known.content == content;
  });
  if (layout == kLayouts.end()) {
    reason = fmt::format("revision {} is none that is known to count energy", metrics.revision);
    return std::nullopt;
  }
  if (said < layout->bytes) {
    reason = fmt::format("a table of revision {} has {} bytes, and this one {}", metrics.revision, layout->bytes, said);
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

}  // namespace ergotune
