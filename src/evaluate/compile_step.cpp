#include "evaluate/compile_step.hpp"

#include <new>

#include "ergotune/base/clock.hpp"
#include "evaluate/machine_fault.hpp"

namespace ergotune {

CompileOutcome CompileStep::run(const std::function<CompileJob()>& make_job) {
  CompileOutcome outcome;
  const double started = host_seconds();
  std::optional<CompileJob> job;
  try {
    job = make_job();
  } catch (const std::exception& error) {
    // The configuration meets an expression or a template that has no value for it.
    outcome.status = Status::compile_error;
    outcome.message = error.what();
  }
  if (job) compile(*job, outcome);
  outcome.seconds = host_seconds() - started;
  return outcome;
}

void CompileStep::compile(const CompileJob& job, CompileOutcome& outcome) {
  const std::string key = CompileCache::key(job, identity_);
  if (auto known = cache_.find(key)) {
    outcome.binary = std::move(*known);
    outcome.from_cache = true;
    return;
  }
  try {
    outcome.binary = compiler_.compile(job);
  } catch (const DeviceError& error) {
    outcome.status = error.fault() == DeviceFault::unsupported ? Status::unsupported
                     : error.fault() == DeviceFault::timeout   ? Status::timeout
                                                               : Status::compile_error;
    outcome.message = error.what();
    throw_if_machines_fault(outcome.status, outcome.message, device_);
    return;
  } catch (const std::bad_alloc&) {
    outcome.status = Status::compile_error;
    outcome.message = "out of memory while compiling";
    return;
  }
  cache_.store(key, outcome.binary);
}

}  // namespace ergotune
