// Compiled code on disk by content hash: a resumed session, another objective or another clock compiles
// nothing again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "device/device.hpp"

namespace ergotune {

class CompileCache {
 public:
  static constexpr std::uint64_t kDefaultLimit = std::uint64_t{1} << 30;

  /// An empty folder switches it off. `limit` in bytes; 0: none.
  explicit CompileCache(std::filesystem::path folder, std::uint64_t limit = limit_from_environment())
      : folder_(std::move(folder)), limit_(limit) {}

  /// Everything that the compiled code depends on: the job, the contents of the files it includes (quoted or
  /// in the include folders, recursively), the compiler's identity.
  static std::string key(const CompileJob& job, const std::string& compiler_identity);
  /// nullopt when it is not there or damaged. What is found counts as used now.
  std::optional<Binary> find(const std::string& key) const;
  /// Written whole or not at all; a cache that cannot be written is no failure. Now and then it is pruned.
  void store(const std::string& key, const Binary& binary);
  /// Removes what was not used for longest until nine tenths of the limit are left, if it is exceeded.
  void prune() const;

  /// $XDG_CACHE_HOME/ergotune/compiled, else ~/.cache/ergotune/compiled; empty where there is no home.
  static std::filesystem::path default_folder();
  /// $ERGOTUNE_CACHE_LIMIT ("500M", "2GiB", "0" for none), else kDefaultLimit. Throws UserError.
  static std::uint64_t limit_from_environment();

 private:
  std::filesystem::path file_of(const std::string& key) const;
  std::filesystem::path folder_;
  std::uint64_t limit_;
  std::uint64_t written_ = 0;  ///< bytes stored since it was last pruned
  bool pruned_ = false;
};

/// What a Binary is made of (base/messages/serialise.hpp): in the cache's files, and on its way from compiler to
/// runner.
inline auto fields(Binary& binary) {
  auto& [bytes, entry, log] = binary;
  return std::tie(bytes, entry, log);
}

class CachedCompiler {
 public:
  /// An empty folder keeps nothing.
  CachedCompiler(std::unique_ptr<Compiler> compiler, std::filesystem::path cache_folder);

  struct Outcome {
    Binary binary;
    bool from_cache = false;
  };
  /// Throws what the compiler throws: DeviceError for what the job is to blame for. Failures are not kept.
  Outcome compile(const CompileJob& job);
  /// The compiler's: what its code depends on besides the job.
  const std::string& identity() const { return identity_; }

 private:
  std::unique_ptr<Compiler> compiler_;
  std::string identity_;
  CompileCache cache_;
};

}  // namespace ergotune
