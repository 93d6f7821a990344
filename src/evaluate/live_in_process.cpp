#include <fmt/format.h>

#include <deque>

#include "ergotune/base/clock.hpp"
#include "ergotune/evaluate/live.hpp"
#include "evaluate/energy_link.hpp"
#include "kernel/cached_compiler.hpp"
#include "measure/compile_status.hpp"

namespace ergotune {

struct InProcessEvaluator::State {
  Problem problem;
  LiveOptions options;
  std::unique_ptr<Device> device;
  CachedCompiler compiler;
  Runner runner;
  std::vector<std::string> notes;
  std::deque<EvaluationRequest> queue;
  RunJournal* journal = nullptr;

  State(const Problem& p, LiveOptions o)
      : problem(p),
        options(std::move(o)),
        device(open_device(options.device, &problem)),
        compiler(device->make_compiler(), !options.use_cache             ? std::filesystem::path()
                                          : options.cache_folder.empty() ? CompileCache::default_folder()
                                                                         : options.cache_folder),
        runner(*device, problem, options.measure) {
    if (options.energy) {
      add_energy_observers(runner, device->info(), options.sensors, options.energy_seconds, options.measure,
                           notes);
    }
  }

  Measurement measure(const Configuration& configuration, const RunOptions& run) {
    const double started = host_seconds();
    Binary binary;
    try {
      binary = compiler.compile(runner.compile_job(configuration)).binary;
    } catch (const std::exception& error) {
      Measurement failed;
      failed.status = compile_status(error);
      failed.message = error.what();
      failed.compile_seconds = host_seconds() - started;
      failed.finished_at = wall_seconds();
      return failed;
    }
    const double compiled = host_seconds() - started;
    Measurement measurement = runner.run(configuration, binary, run);
    measurement.compile_seconds = compiled;
    return measurement;
  }
};

InProcessEvaluator::InProcessEvaluator(const Problem& problem, LiveOptions options)
    : state_(std::make_unique<State>(problem, std::move(options))) {}
InProcessEvaluator::~InProcessEvaluator() = default;

Runner& InProcessEvaluator::runner() { return state_->runner; }
const DeviceInfo& InProcessEvaluator::device() const { return state_->device->info(); }
const std::string& InProcessEvaluator::compiler_identity() const { return state_->compiler.identity(); }
std::vector<std::string> InProcessEvaluator::notes() const { return state_->notes; }

bool InProcessEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  RunOptions run;
  run.reference_only = true;
  for (const Configuration& candidate : candidates) {
    if (state_->runner.has_reference()) return true;
    state_->measure(candidate, run);
  }
  return state_->runner.has_reference();
}

std::string InProcessEvaluator::description() const {
  return fmt::format("{} ({})", device().id, device().name);
}
void InProcessEvaluator::submit(EvaluationRequest request) { state_->queue.push_back(std::move(request)); }

std::optional<EvaluationResult> InProcessEvaluator::wait(double) {
  if (state_->queue.empty()) return std::nullopt;
  EvaluationRequest request = std::move(state_->queue.front());
  state_->queue.pop_front();
  if (state_->journal) state_->journal->about_to_run(request);
  RunOptions run;
  run.give_up_above = request.repeat ? 1e300 : request.give_up_above;
  run.objective_quantity = request.objective_quantity;
  return EvaluationResult{request.id, request.index, state_->measure(request.configuration, run)};
}

std::size_t InProcessEvaluator::pending() const { return state_->queue.size(); }
void InProcessEvaluator::cancel() { state_->queue.clear(); }
void InProcessEvaluator::set_journal(RunJournal* journal) { state_->journal = journal; }

}  // namespace ergotune
