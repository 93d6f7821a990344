#include "evaluate/live/in_process_evaluator.hpp"

#include "evaluate/live/machine_fault.hpp"
#include "kernel/compile_cache.hpp"
#include "kernel/round.hpp"

namespace ergotune {

InProcessEvaluator::InProcessEvaluator(const Problem& problem, LiveOptions options)
    : problem_(problem),
      options_(std::move(options)),
      device_(open_device(options_.device, &problem_)),
      step_(device_->make_compiler(), device_->info(),
            !options_.use_cache             ? std::filesystem::path()
            : options_.cache_folder.empty() ? CompileCache::default_folder()
                                            : options_.cache_folder),
      runner_(*device_, problem_, options_.measure),
      notes_(runner_.notes()) {
  if (options_.energy)
    add_energy_observers(runner_, device(), options_.sensors, options_.energy_seconds, options_.measure, notes_);
}

/// Compiles all kernels until one fails; returns the outcome of the last one compiled.
CompileOutcome InProcessEvaluator::compile(const Configuration& configuration, std::vector<Binary>& binaries) {
  CompileOutcome outcome;
  double seconds = 0;
  for (std::size_t kernel = 0; kernel < problem_.kernels.size() && outcome.status == Status::ok; ++kernel) {
    outcome = step_.run([&] { return runner_.compile_job(configuration, kernel); });
    seconds += outcome.seconds;
    if (outcome.status != Status::ok) outcome.message = with_kernel_name(problem_.kernels[kernel], outcome.message);
    MismatchCheck{problem_}(kernel, configuration, outcome.mismatch, outcome.message);
    binaries.push_back(std::move(outcome.binary));
  }
  outcome.seconds = seconds;
  return outcome;
}

Measurement InProcessEvaluator::run(const EvaluationRequest& request, const std::vector<Binary>& binaries,
                                    const RunOptions& options) {
  if (journal_) journal_->about_to_run(request, 0);
  Measurement measurement = runner_.run(request.configuration, binaries, options);
  throw_machine_fault(measurement.status, measurement.message, device());
  return measurement;
}

bool InProcessEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  RunOptions run;
  run.reference_only = true;
  for (const Configuration& candidate : candidates) {
    if (runner_.has_reference()) return true;
    std::vector<Binary> binaries;
    if (compile(candidate, binaries).status == Status::ok) runner_.run(candidate, binaries, run);
  }
  return runner_.has_reference();
}

std::optional<EvaluationResult> InProcessEvaluator::wait(double) {
  if (serial_.waiting() == 0) return std::nullopt;
  const EvaluationRequest request = serial_.take_next();
  std::vector<Binary> binaries;
  CompileOutcome compiled = compile(request.configuration, binaries);
  EvaluationResult result{request.id, request.index, {}, {}};
  if (compiled.status == Status::ok) {
    result = serial_.measure(request, gpu_of(device()),
                             [&](const RunOptions& options) { return run(request, binaries, options); });
  } else {
    result.measurement = failed_measurement(compiled.status, compiled.message);
  }
  result.measurement.compile_seconds = compiled.seconds;
  return result;
}

}  // namespace ergotune
