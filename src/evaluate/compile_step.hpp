// One kernel of one configuration from source to code, or from the cache: what compile workers do, and the
// evaluator that works in this process.
#pragma once

#include <functional>
#include <string>

#include "ergotune/measure/measurement.hpp"
#include "evaluate/compile_cache.hpp"

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
  /// `device` is what it compiles for.
  CompileStep(Compiler& compiler, const DeviceInfo& device, CompileCache cache)
      : compiler_(compiler), device_(device), cache_(std::move(cache)), identity_(compiler.identity()) {}
  const std::string& identity() const { return identity_; }
  /// Compiles what `make_job` gives. A configuration's failure, that of `make_job` included, is the outcome's
  /// status. Throws what is none: UserError where the machine keeps the compiler from working (a full disk,
  /// no compiler), Error for the tool's own failures.
  CompileOutcome run(const std::function<CompileJob()>& make_job);

 private:
  void compile(const CompileJob& job, CompileOutcome& outcome);
  Compiler& compiler_;
  const DeviceInfo& device_;
  CompileCache cache_;
  std::string identity_;
};

}  // namespace ergotune
