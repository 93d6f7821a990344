// Compiles one kernel of one configuration, or takes it from the cache. Used by compile workers and by the in-process
// evaluator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/result.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

struct Problem;

/// What of the problem does not fit the source: nothing, the function or the number of arguments, or one argument.
enum : std::int64_t { kFits = 0, kFunctionMismatch = 1 };  // 1 + n: argument n, from 1

struct CompileOutcome {
  Status status = Status::ok;
  std::string message;  ///< the compiler's message, if it failed
  Binary binary;
  double seconds = 0;
  bool from_cache = false;
  std::int64_t mismatch = kFits;
};

/// Ends the session if the function or the arguments of the problem do not fit the source in the default configuration.
/// In others that is a failure like any other, since macros may change what a kernel takes.
class MismatchCheck {
 public:
  explicit MismatchCheck(const Problem& problem);
  /// Throws UserError.
  void operator()(std::size_t kernel, const Configuration& configuration, std::int64_t mismatch,
                  const std::string& message) const;

 private:
  Configuration defaults_;
  std::vector<std::vector<SourcePlace>> places_;  ///< by kernel: of its arguments
};

class CompileStep {
 public:
  /// `device`: the device to compile for; must outlive this object. `cache_folder`: empty: code is not cached.
  CompileStep(std::unique_ptr<Compiler> compiler, const DeviceInfo& device, std::filesystem::path cache_folder)
      : compiler_(std::move(compiler), std::move(cache_folder)), device_(device) {}
  const std::string& identity() const { return compiler_.identity(); }
  /// Compiles the job that `make_job` returns. A failure of the configuration, including one of `make_job`, is reported
  /// as the outcome's status. Throws UserError if the machine prevents the compiler from working (a full disk, no
  /// compiler), Error for internal failures.
  CompileOutcome run(const std::function<CompileJob()>& make_job);

 private:
  void compile(const CompileJob& job, CompileOutcome& outcome);
  CachedCompiler compiler_;
  const DeviceInfo& device_;
};

}  // namespace ergotune
