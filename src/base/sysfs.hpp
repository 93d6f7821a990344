// PCI addresses, and files of /sys and /proc below a root that tests can change (ERGOTUNE_SYSFS_ROOT).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// Normal form of PCI addresses, by which devices and sensors are matched. Drivers write domains with 4 or 8 digits, in
/// either case, with or without function. Returns "00000000:1b:00.0" (lower case) for "0000:1B:00.0", "1b:00.0",
/// "00000000:1B:00.0" or "1b:00"; empty for an invalid address.
std::string normalise_pci_address(std::string_view address);

/// A tree of small text files such as /sys. Paths are absolute ("/sys/class/...") and are resolved below the root.
class Sysfs {
 public:
  /// Root from ERGOTUNE_SYSFS_ROOT, else "/".
  static Sysfs from_environment();
  explicit Sysfs(std::filesystem::path root = "/") : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  /// Returns the real path of `path` below the root.
  std::filesystem::path real(const std::filesystem::path& path) const;
  bool exists(const std::filesystem::path& path) const;
  /// Returns the text of a file without trailing white space; nullopt if it cannot be read.
  std::optional<std::string> read(const std::filesystem::path& path) const;
  std::optional<long long> read_integer(const std::filesystem::path& path) const;
  /// Writes text with one write(2) call, as sysfs expects; returns 0 or errno.
  int write(const std::filesystem::path& path, const std::string& text) const;
  /// Returns the names of the entries of a folder, sorted; empty if it does not exist.
  std::vector<std::string> list(const std::filesystem::path& folder) const;

 private:
  std::filesystem::path root_;
};

}  // namespace ergotune
