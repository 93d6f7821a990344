// Functions shared by the sysfs controls (tegra, amdgpu, cpufreq): writing with errno as a status, pairs of min and max
// files, and restore steps of kinds "sysfs" (text of a file) and "frequency-range" (a pair of files, written in the
// right order).
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
/// Writes a file; a failure has status and message.
ControlResult write_file(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text);
/// True when the file can be written by this process.
bool writable(const Sysfs& sysfs, const std::filesystem::path& path);

/// Two files with the bounds of a frequency. The Linux kernel rejects min > max at any moment, so that the order of the
/// writes matters.
struct FrequencyFiles {
  std::filesystem::path min, max;
};
/// The contents of such a pair of files.
struct FrequencyRange {
  long long low, high;
  bool operator==(const FrequencyRange&) const = default;
};
/// Raises max before min, or lowers min before max. Tries both writes even if one fails.
ControlResult write_range(const Sysfs& sysfs, const FrequencyFiles& files, long long low, long long high);
/// Returns nullopt if the files cannot be read.
std::optional<FrequencyRange> read_range(const Sysfs& sysfs, const FrequencyFiles& files);

/// Appends a "frequency-range" step with the min file as target and the present value "low high"; appends nothing if
/// the files cannot be read.
void snapshot_range(const Sysfs& sysfs, const FrequencyFiles& files, std::vector<RestoreStep>& steps);
/// Appends a "sysfs" step with the file's present text; appends nothing if the file is missing.
void snapshot_text(const Sysfs& sysfs, const std::filesystem::path& path, std::vector<RestoreStep>& steps);

/// Carry out and verify a step; they do not write if the value is already correct.
ControlResult restore_text(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text);
ControlResult restore_range(const Sysfs& sysfs, const FrequencyFiles& files, const std::string& value);

/// Parses "100 200 300"; returns the numbers in ascending order.
std::vector<long long> parse_numbers(const std::string& text);

}  // namespace ergotune
