#include "evaluate/compile/compile_step.hpp"

#include <new>

#include "base/clock.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "measure/code_restrictions.hpp"

namespace ergotune {

CompileOutcome CompileStep::run(const std::function<CompileJob()>& make_job) {
  CompileOutcome outcome;
  const double started = host_seconds();
  std::optional<CompileJob> job;
  try {
    job = make_job();
  } catch (const std::exception& error) {
    // An expression or template has no value for this configuration.
    outcome.status = Status::compile_error;
    outcome.message = error.what();
  }
  if (job) compile(*job, outcome);
  outcome.seconds = host_seconds() - started;
  return outcome;
}

void CompileStep::compile(const CompileJob& job, CompileOutcome& outcome) {
  try {
    CachedCompiler::Outcome compiled = compiler_.compile(job);
    outcome.binary = std::move(compiled.binary);
    outcome.from_cache = compiled.from_cache;
  } catch (const DeviceError& error) {
    outcome.status = compile_status(error);
    outcome.message = error.what();
    throw_machine_fault(outcome.status, outcome.message, device_);
  } catch (const std::bad_alloc&) {
    outcome.status = Status::compile_error;
    outcome.message = "out of memory while compiling";
  }
}

}  // namespace ergotune
