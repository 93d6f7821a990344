#include <fmt/format.h>

#include <deque>

#include "base/clock.hpp"
#include "evaluate/compile/compile_step.hpp"
#include "evaluate/live/device_controls.hpp"
#include "evaluate/live/energy_link.hpp"
#include "evaluate/live/live.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "kernel/round.hpp"

namespace ergotune {

struct InProcessEvaluator::State {
  Problem problem;
  LiveOptions options;
  // Destroyed in reverse order: what measures ends before the clocks go back.
  std::unique_ptr<DeviceControls> controls;
  std::unique_ptr<Device> device;
  CompileStep step;
  Runner runner;
  std::vector<std::string> notes;
  std::deque<EvaluationRequest> queue;
  RunJournal* journal = nullptr;

  State(const Problem& p, LiveOptions o)
      : problem(p),
        options(std::move(o)),
        device(open_device(options.device, &problem)),
        step(device->make_compiler(), device->info(),
             !options.use_cache             ? std::filesystem::path()
             : options.cache_folder.empty() ? CompileCache::default_folder()
                                            : options.cache_folder),
        runner(*device, problem, options.measure),
        notes(runner.notes()) {
    if (options.energy) {
      add_energy_observers(runner, device->info(), options.sensors, options.energy_seconds, options.measure, notes);
    }
  }

  std::string board() const { return device->info().uuid.empty() ? device->info().id : device->info().uuid; }

  EvaluationRequest take_next() {
    if (controls) return controls->next_of(queue);
    EvaluationRequest request = std::move(queue.front());
    queue.pop_front();
    return request;
  }

  Measurement run_once(const EvaluationRequest& request, const std::vector<Binary>& binaries,
                       const ControlSetting* setting) {
    RunOptions run;
    run.resources_only = request.resources_only;
    run.give_up_above = request.repeat ? 1e300 : request.give_up_above;
    run.objective_quantity = request.objective_quantity;
    if (setting) controls->prepare(run, *setting);
    if (journal) journal->about_to_run(request, 0);
    Measurement measurement = runner.run(request.configuration, binaries, run);
    throw_if_machines_fault(measurement.status, measurement.message, device->info());
    return measurement;
  }

  Measurement run(const EvaluationRequest& request, const std::vector<Binary>& binaries) {
    if (!controls || request.resources_only) return run_once(request, binaries, nullptr);
    return controls->measure(request.configuration,
                             [&](const ControlSetting& setting) { return run_once(request, binaries, &setting); });
  }

  /// Compiles every kernel, until one fails: the outcome of the last.
  CompileOutcome compile(const Configuration& configuration, std::vector<Binary>& binaries) {
    CompileOutcome outcome;
    double seconds = 0;
    for (std::size_t kernel = 0; kernel < problem.kernels.size() && outcome.status == Status::ok; ++kernel) {
      outcome = step.run([&] { return runner.compile_job(configuration, kernel); });
      seconds += outcome.seconds;
      if (outcome.status != Status::ok) outcome.message = about_kernel(problem.kernels[kernel], outcome.message);
      binaries.push_back(std::move(outcome.binary));
    }
    outcome.seconds = seconds;
    return outcome;
  }
};

InProcessEvaluator::InProcessEvaluator(const Problem& problem, LiveOptions options)
    : state_(std::make_unique<State>(problem, std::move(options))) {}
InProcessEvaluator::~InProcessEvaluator() = default;

Runner& InProcessEvaluator::runner() { return state_->runner; }
const DeviceInfo& InProcessEvaluator::device() const { return state_->device->info(); }
const std::string& InProcessEvaluator::compiler_identity() const { return state_->step.identity(); }
std::vector<std::string> InProcessEvaluator::notes() const { return state_->notes; }

void InProcessEvaluator::set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                                      std::size_t) {
  state_->controls = std::make_unique<DeviceControls>(std::move(session), std::move(parameters));
}

bool InProcessEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  RunOptions run;
  run.reference_only = true;
  for (const Configuration& candidate : candidates) {
    if (state_->runner.has_reference()) return true;
    std::vector<Binary> binaries;
    if (state_->compile(candidate, binaries).status == Status::ok) state_->runner.run(candidate, binaries, run);
  }
  return state_->runner.has_reference();
}

std::string InProcessEvaluator::description() const {
  const std::string words = fmt::format("{} ({})", device().id, device().name);
  return state_->controls ? fmt::format("{}, clocks set through {}", words, state_->controls->id()) : words;
}
std::size_t InProcessEvaluator::capacity() const { return state_->controls ? 8 : 1; }
void InProcessEvaluator::submit(EvaluationRequest request) { state_->queue.push_back(std::move(request)); }

std::optional<EvaluationResult> InProcessEvaluator::wait(double) {
  if (state_->queue.empty()) return std::nullopt;
  const EvaluationRequest request = state_->take_next();
  std::vector<Binary> binaries;
  CompileOutcome compiled = state_->compile(request.configuration, binaries);
  EvaluationResult result{request.id, request.index, {}, {}};
  if (compiled.status == Status::ok) {
    result.measurement = state_->run(request, binaries);
    result.board = state_->board();
    result.disturbed = state_->controls && !request.resources_only && state_->controls->disturbed();
  } else {
    result.measurement.status = compiled.status;
    result.measurement.message = std::move(compiled.message);
    result.measurement.finished_at = wall_seconds();
  }
  result.measurement.compile_seconds = compiled.seconds;
  return result;
}

std::size_t InProcessEvaluator::pending() const { return state_->queue.size(); }
void InProcessEvaluator::cancel() { state_->queue.clear(); }
void InProcessEvaluator::set_journal(RunJournal* journal) { state_->journal = journal; }

}  // namespace ergotune
