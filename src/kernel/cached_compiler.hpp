// The one way to compile a configuration: what was compiled before comes from the disk.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

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
