// The backends of open_control(), one per file *_control.cpp.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sysfs.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

/// Bounds for protocols that serialise controls (base/messages/serialise.hpp).
constexpr ControlQuantity last_value(ControlQuantity) { return ControlQuantity::power_limit_w; }
constexpr ControlStatus last_value(ControlStatus) { return ControlStatus::failed; }

inline constexpr std::array kControlQuantities = {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz,
                                                  ControlQuantity::power_limit_w};
inline constexpr const char* kHelperSocket = "/run/ergotune/ergotuned.sock";

/// Returns "core clock" ... for messages.
std::string quantity_description(ControlQuantity quantity);
/// Returns "core clock 1410 MHz: <reason>".
std::string error_description(ControlQuantity quantity, double value, const std::string& reason);
/// Result of Control::check() if the value that is read back differs.
ControlResult changed_meanwhile(ControlQuantity quantity, double requested, double now);
/// Result of Control::restore() for a step of another device.
ControlResult foreign_step(const RestoreStep& step);
/// The range of a quantity that takes the given values, whose default is the highest; not supported if there are none.
ControlRange range_of(std::vector<double> ascending);

// Each of these opens a control, or returns nullptr and sets `reason`.
std::unique_ptr<Control> open_nvml_control(const std::string& id, const ControlEnvironment& environment,
                                           std::string& reason);
std::unique_ptr<Control> open_tegra_control(const ControlEnvironment& environment, std::string& reason);
std::unique_ptr<Control> open_amdgpu_control(const std::string& id, const ControlEnvironment& environment,
                                             std::string& reason);
std::unique_ptr<Control> open_cpufreq_control(const ControlEnvironment& environment, std::string& reason);
/// Opens a device through ergotuned, by device key. `direct` is the same device opened without the helper; if the
/// helper serves the device, the helper's control takes it over for reading.
std::unique_ptr<Control> open_helper_control(const std::string& device_key, const ControlEnvironment& environment,
                                             std::string& reason, std::unique_ptr<Control>& direct);
/// Which client of ergotuned has the lease of a device: "pid 4711, user 1000, core_clock_mhz 1395"; empty if none has.
std::string helper_lease(const std::string& device_key, const ControlEnvironment& environment);

std::vector<std::string> list_nvml_controls(const ControlEnvironment& environment);
std::vector<std::string> list_tegra_controls(const ControlEnvironment& environment);
std::vector<std::string> list_amdgpu_controls(const ControlEnvironment& environment);
std::vector<std::string> list_cpufreq_controls(const ControlEnvironment& environment);

/// Return the id of the control of a device; empty if there is none.
std::string find_nvml_control(const std::string& uuid, const std::string& pci_address,
                              const ControlEnvironment& environment);
std::string find_amdgpu_control(const std::string& pci_address, const ControlEnvironment& environment);
std::string find_control(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                         const ControlEnvironment& environment);

// Functions shared by the sysfs controls (tegra, amdgpu, cpufreq): writing with errno as a status, pairs of min and max
// files, and restore steps of kinds "sysfs" (text of a file) and "frequency-range" (a pair of files, written in the
// right order).

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
