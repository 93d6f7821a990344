// Compiled code on disk by content hash: a resumed session, another objective or another clock compiles
// nothing again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ergotune/device/device.hpp"

namespace ergotune {

class CompileCache {
 public:
  /// An empty folder switches it off.
  explicit CompileCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Everything that the compiled code depends on: the job, the contents of the files it includes (quoted or
  /// in the include folders, recursively), the compiler's identity.
  static std::string key(const CompileJob& job, const std::string& compiler_identity);
  /// nullopt when it is not there or damaged.
  std::optional<Binary> find(const std::string& key) const;
  /// Written whole or not at all; a cache that cannot be written is no failure.
  void store(const std::string& key, const Binary& binary) const;

  /// $XDG_CACHE_HOME/ergotune/compiled, else ~/.cache/ergotune/compiled; empty where there is no home.
  static std::filesystem::path default_folder();

 private:
  std::filesystem::path file_of(const std::string& key) const;
  std::filesystem::path folder_;
};

/// A hash over the files that `source` includes, found beside it or in `folders`, recursively; empty when it
/// includes none of them. System headers are not followed: the compiler's identity stands for them.
std::string hash_of_includes(const std::string& source, const std::vector<std::string>& folders);

}  // namespace ergotune
