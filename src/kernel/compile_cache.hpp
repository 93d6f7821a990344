// Cache of compiled code on disk, by content hash: a resumed session, another objective or another clock needs no
// compilation.
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

  /// An empty folder disables the cache. `limit` in bytes; 0: none.
  explicit CompileCache(std::filesystem::path folder, std::uint64_t limit = limit_from_environment())
      : folder_(std::move(folder)), limit_(limit) {}

  /// Returns a hash of everything that the compiled code depends on: the job, the contents of the files that it
  /// includes (quoted or in the include folders, recursively), and the identity of the compiler.
  static std::string key(const CompileJob& job, const std::string& compiler_identity);
  /// Returns nullopt if the entry is missing or damaged; otherwise marks it as used now.
  std::optional<Binary> find(const std::string& key) const;
  /// Stores an entry atomically. Ignores failures to write. Prunes the cache at intervals.
  void store(const std::string& key, const Binary& binary);
  /// If the cache exceeds its limit, removes the least recently used entries until nine tenths of the limit remain.
  void prune() const;

  /// Returns $XDG_CACHE_HOME/ergotune/compiled, else ~/.cache/ergotune/compiled; empty if there is no home directory.
  static std::filesystem::path default_folder();
  /// Returns $ERGOTUNE_CACHE_LIMIT ("500M", "2GiB", "0": none), else kDefaultLimit. Throws UserError for other text.
  static std::uint64_t limit_from_environment();

 private:
  std::filesystem::path file_of(const std::string& key) const;
  std::filesystem::path folder_;
  std::uint64_t limit_;
  std::uint64_t written_ = 0;  ///< bytes stored since the last pruning
  bool pruned_ = false;
};

/// Serialisation of a Binary (base/messages/serialise.hpp), for the cache's files and for messages from compiler to
/// runner.
inline auto fields(Binary& binary) {
  auto& [bytes, entry, log] = binary;
  return std::tie(bytes, entry, log);
}

class CachedCompiler {
 public:
  /// An empty folder disables the cache.
  CachedCompiler(std::unique_ptr<Compiler> compiler, std::filesystem::path cache_folder);

  struct Outcome {
    Binary binary;
    bool from_cache = false;
  };
  /// Throws what the compiler throws: DeviceError for failures of the job. Failures are not cached.
  Outcome compile(const CompileJob& job);
  /// Identity of the compiler: what its code depends on besides the job.
  const std::string& identity() const { return identity_; }

 private:
  std::unique_ptr<Compiler> compiler_;
  std::string identity_;
  CompileCache cache_;
};

}  // namespace ergotune
