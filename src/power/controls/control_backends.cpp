#include "power/controls/control_backends.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace ergotune {

ControlStatus status_of_errno(int code) {
  switch (code) {
    case 0:
      return ControlStatus::ok;
    case EACCES:
    case EPERM:
    case EROFS:
      return ControlStatus::no_permission;
    case EINVAL:
    case ERANGE:
      return ControlStatus::invalid_value;
    case ENODEV:
    case ENXIO:
    case EIO:
      return ControlStatus::device_lost;
    case ENOENT:
    case EOPNOTSUPP:
      return ControlStatus::not_supported;
    case ETIMEDOUT:
    case EBUSY:
      return ControlStatus::timeout;
    default:
      return ControlStatus::failed;
  }
}

ControlResult write_file(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text) {
  const int code = sysfs.write(path, text);
  if (!code) return {};
  return {status_of_errno(code),
          fmt::format("cannot write \"{}\" to {}: {}", text, path.string(), std::strerror(code))};
}

bool writable(const Sysfs& sysfs, const std::filesystem::path& path) {
  return ::faccessat(AT_FDCWD, sysfs.real(path).c_str(), W_OK, AT_EACCESS) == 0;
}

std::optional<FrequencyRange> read_range(const Sysfs& sysfs, const FrequencyFiles& files) {
  const auto min = sysfs.read_integer(files.min), max = sysfs.read_integer(files.max);
  if (!min || !max) return std::nullopt;
  return FrequencyRange{*min, *max};
}

ControlResult write_range(const Sysfs& sysfs, const FrequencyFiles& files, long long low, long long high) {
  const auto now = read_range(sysfs, files);
  const bool raising = !now || low > now->high;
  const auto write_min = [&] { return write_file(sysfs, files.min, std::to_string(low)); };
  const auto write_max = [&] { return write_file(sysfs, files.max, std::to_string(high)); };
  const ControlResult first = raising ? write_max() : write_min();
  const ControlResult second = raising ? write_min() : write_max();
  return first.ok() ? second : first;
}

void snapshot_range(const Sysfs& sysfs, const FrequencyFiles& files, std::vector<RestoreStep>& steps) {
  if (const auto now = read_range(sysfs, files))
    steps.push_back({kFrequencyRangeStep, files.min.string(), fmt::format("{} {}", now->low, now->high)});
}

void snapshot_text(const Sysfs& sysfs, const std::filesystem::path& path, std::vector<RestoreStep>& steps) {
  if (const auto text = sysfs.read(path)) steps.push_back({kSysfsStep, path.string(), *text});
}

ControlResult restore_text(const Sysfs& sysfs, const std::filesystem::path& path, const std::string& text) {
  if (sysfs.read(path) == text) return {};
  if (auto result = write_file(sysfs, path, text); !result.ok()) return result;
  const auto now = sysfs.read(path);
  if (now == text) return {};
  return {ControlStatus::failed,
          fmt::format("{} is \"{}\" after \"{}\" was written", path.string(), now.value_or("unreadable"), text)};
}

ControlResult restore_range(const Sysfs& sysfs, const FrequencyFiles& files, const std::string& value) {
  FrequencyRange wanted{};
  std::istringstream in(value);
  if (!(in >> wanted.low >> wanted.high) || wanted.low < 0 || wanted.low > wanted.high)
    return {ControlStatus::invalid_value, fmt::format("\"{}\" is not a frequency range", value)};
  if (read_range(sysfs, files) == wanted) return {};
  if (auto result = write_range(sysfs, files, wanted.low, wanted.high); !result.ok()) return result;
  const auto now = read_range(sysfs, files);
  if (now == wanted) return {};
  return {ControlStatus::failed,
          fmt::format("{} is {} after {} to {} was written", files.min.string(),
                      now ? fmt::format("{} to {}", now->low, now->high) : "unreadable", wanted.low, wanted.high)};
}

std::vector<long long> parse_numbers(const std::string& text) {
  std::vector<long long> numbers;
  std::istringstream in(text);
  for (long long number; in >> number;) numbers.push_back(number);
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace ergotune
