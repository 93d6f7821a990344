// One kernel of one configuration from source to code, or from the cache: what compile workers do, and the
// evaluator that works in this process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "ergotune/result.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

struct CompileOutcome {
  Status status = Status::ok;
  std::string message;  ///< the compiler's words where it failed
  Binary binary;
  double seconds = 0;
  bool from_cache = false;
};

class CompileStep {
 public:
  /// `device` is what it compiles for. An empty cache folder keeps nothing.
  CompileStep(std::unique_ptr<Compiler> compiler, const DeviceInfo& device, std::filesystem::path cache_folder)
      : compiler_(std::move(compiler), std::move(cache_folder)), device_(device) {}
  const std::string& identity() const { return compiler_.identity(); }
  /// Compiles what `make_job` gives. A configuration's failure, that of `make_job` included, is the outcome's
  /// status. Throws what is none: UserError where the machine keeps the compiler from working (a full disk,
  /// no compiler), Error for the tool's own failures.
  CompileOutcome run(const std::function<CompileJob()>& make_job);

 private:
  void compile(const CompileJob& job, CompileOutcome& outcome);
  CachedCompiler compiler_;
  const DeviceInfo& device_;
};

}  // namespace ergotune
