// What the sysfs controls (tegra, amdgpu, cpufreq) share: writing with errno as a status, pairs of min and
// max files, and restore steps of kinds "sysfs" (a file's text) and "frequency-range" (a pair, in the right
// order).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/sysfs.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

inline constexpr const char* kSysfsStep = "sysfs";
inline constexpr const char* kFrequencyRangeStep = "frequency-range";

/// EACCES, EPERM, EROFS -> no_permission; EINVAL, ERANGE -> invalid_value; ENODEV, EIO -> device_lost;
/// ENOENT, EOPNOTSUPP -> not_supported.
ControlStatus status_of_errno(int code);
/// Writes, with the failure in words.
ControlResult write_file(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text);
/// True when the file can be written by this process.
bool writable(const Sysfs& sysfs, const std::filesystem::path& path);

/// Two files that bound a frequency. The kernel refuses min > max at every moment, so the order of the writes
/// matters.
struct FrequencyFiles {
  std::filesystem::path min, max;
};
/// What they say.
struct FrequencyRange {
  long long low, high;
  bool operator==(const FrequencyRange&) const = default;
};
/// Raises max before min, lowers min before max; a failing write does not keep the other from being tried.
ControlResult write_range(const Sysfs& sysfs, const FrequencyFiles& files, long long low, long long high);
/// nullopt when they cannot be read.
std::optional<FrequencyRange> read_range(const Sysfs& sysfs, const FrequencyFiles& files);

/// "frequency-range" with the min file as target and value "low high", read now; nothing when it cannot be
/// read.
void snapshot_range(const Sysfs& sysfs, const FrequencyFiles& files, std::vector<RestoreStep>& steps);
/// "sysfs" with the file's text; nothing when it is missing.
void snapshot_text(const Sysfs& sysfs, const std::filesystem::path& path, std::vector<RestoreStep>& steps);

/// Carries out and verifies: nothing is written where the text is already right.
ControlResult restore_text(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text);
ControlResult restore_range(const Sysfs& sysfs, const FrequencyFiles& files, const std::string& value);

/// "100 200 300" as ascending numbers.
std::vector<long long> parse_numbers(const std::string& text);

}  // namespace ergotune
