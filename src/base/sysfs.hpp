// Files of /sys and /proc below a root that tests can move (ERGOTUNE_SYSFS_ROOT).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// A tree of small text files such as /sys. Paths are given absolute ("/sys/class/...") and read below the root.
class Sysfs {
 public:
  /// Root from ERGOTUNE_SYSFS_ROOT, else "/".
  static Sysfs from_environment();
  explicit Sysfs(std::filesystem::path root = "/") : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  /// The real path of `path` below the root.
  std::filesystem::path real(const std::filesystem::path& path) const;
  bool exists(const std::filesystem::path& path) const;
  /// The file's text without trailing white space; nullopt when it cannot be read.
  std::optional<std::string> read(const std::filesystem::path& path) const;
  std::optional<long long> read_integer(const std::filesystem::path& path) const;
  /// Writes text in one write(2) call as sysfs expects; returns 0 or errno.
  int write(const std::filesystem::path& path, const std::string& text) const;
  /// Names of the entries of a folder, sorted; empty when it is missing.
  std::vector<std::string> list(const std::filesystem::path& folder) const;

 private:
  std::filesystem::path root_;
};

}  // namespace ergotune
