#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "evaluate/live/device_controls.hpp"
#include "evaluate/result_box.hpp"
#include "program/program.hpp"
#include "program/program_runner.hpp"

namespace ergotune {
namespace {

std::vector<std::string> supervisor_of(const LiveOptions& options) {
  if (options.worker_command.empty()) return {own_program(), "supervise"};
  std::vector<std::string> command = options.worker_command;
  command.back() = "supervise";
  return command;
}

}  // namespace

struct ProgramEvaluator::State {
  const Problem problem;
  const Constants constants;
  const DeviceInfo device;
  const LiveOptions options;
  std::string compiler, sensors;

  // Destroyed in reverse order: what measures ends before the clocks go back.
  std::unique_ptr<DeviceControls> controls;
  ProgramRunner runner;

  mutable std::mutex mutex;  ///< of all below
  std::condition_variable changed;
  std::deque<EvaluationRequest> queue;
  std::deque<EvaluationResult> results;
  std::optional<std::uint64_t> running;
  std::set<std::uint64_t> dropped;  ///< cancelled while they ran
  std::exception_ptr fault;         ///< no configuration's: nothing runs after it
  RunJournal* journal = nullptr;
  bool ending = false;
  std::thread thread;

  State(Problem p, Constants c, DeviceInfo d, LiveOptions o, std::vector<std::unique_ptr<Sensor>> s)
      : problem(std::move(p)),
        constants(std::move(c)),
        device(std::move(d)),
        options(std::move(o)),
        sensors(names_of(s)),
        runner(problem, constants, options, supervisor_of(options), std::move(s)) {}

  ~State() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
      queue.clear();
    }
    stop_running();
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  static std::string names_of(const std::vector<std::unique_ptr<Sensor>>& list) {
    std::string names;
    for (const auto& sensor : list) names += (names.empty() ? "" : ",") + sensor->info().id;
    return names;
  }

  /// Until the one that runs has ended: it may be between two processes at the request.
  void stop_running() {
    std::unique_lock lock(mutex);
    while (running) {
      lock.unlock();
      runner.stop();
      lock.lock();
      changed.wait_for(lock, std::chrono::milliseconds(20), [this] { return !running; });
    }
  }

  EvaluationRequest take_next() {
    if (controls) return controls->next_of(queue);
    EvaluationRequest request = std::move(queue.front());
    queue.pop_front();
    return request;
  }

  void print_journal(const EvaluationRequest& request) {
    RunJournal* known = nullptr;
    {
      const std::lock_guard lock(mutex);
      known = journal;
    }
    if (known) known->about_to_run(request, 0);
  }

  bool is_dropped(std::uint64_t id) {
    const std::lock_guard lock(mutex);
    return ending || dropped.contains(id);
  }

  Measurement run_once(const EvaluationRequest& request, const ControlSetting* setting) {
    RunOptions run;
    run.resources_only = request.resources_only;
    run.give_up_above = request.repeat ? 1e300 : request.give_up_above;
    run.objective_quantity = request.objective_quantity;
    if (setting) controls->prepare(run, *setting);
    print_journal(request);
    return runner.run(request.configuration, run);
  }

  Measurement run(const EvaluationRequest& request) {
    if (!controls || request.resources_only) return run_once(request, nullptr);
    return controls->measure(
        request.configuration, [&](const ControlSetting& setting) { return run_once(request, &setting); },
        [&] { return is_dropped(request.id); });
  }

  void loop() {
    while (true) {
      EvaluationRequest request;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return ending || !queue.empty(); });
        if (ending || fault) return;
        request = take_next();
        running = request.id;
      }
      EvaluationResult result{request.id, request.index, {}, device.uuid.empty() ? device.id : device.uuid};
      std::exception_ptr thrown;
      try {
        result.measurement = run(request);
        result.disturbed = controls && !request.resources_only && controls->disturbed();
      } catch (...) {
        thrown = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        running.reset();
        const bool wanted = dropped.erase(request.id) == 0 && !ending;
        if (thrown && wanted) fault = thrown;
        if (!thrown && wanted) results.push_back(std::move(result));
      }
      changed.notify_all();
    }
  }
};

ProgramEvaluator::ProgramEvaluator(Problem problem, Constants constants, DeviceInfo device, LiveOptions options,
                                   std::vector<std::unique_ptr<Sensor>> sensors)
    : state_(std::make_unique<State>(std::move(problem), std::move(constants), std::move(device), std::move(options),
                                     std::move(sensors))) {}
ProgramEvaluator::~ProgramEvaluator() = default;

const DeviceInfo& ProgramEvaluator::device() const { return state_->device; }
const std::string& ProgramEvaluator::compiler_identity() const { return state_->compiler; }
std::vector<std::string> ProgramEvaluator::notes() const {
  if (state_->sensors.empty()) return {};
  return {"energy by " + state_->sensors};
}

void ProgramEvaluator::set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                                    std::size_t) {
  state_->controls = std::make_unique<DeviceControls>(std::move(session), std::move(parameters));
}

std::string ProgramEvaluator::description() const {
  const std::string words = fmt::format("{} (program)", device().name);
  return state_->controls ? fmt::format("{}, clocks set through {}", words, state_->controls->id()) : words;
}

std::size_t ProgramEvaluator::capacity() const { return state_->controls ? 8 : 1; }

void ProgramEvaluator::submit(EvaluationRequest request) {
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back(std::move(request));
  if (!state_->thread.joinable()) state_->thread = std::thread([state = state_.get()] { state->loop(); });
  state_->changed.notify_all();
}

std::optional<EvaluationResult> ProgramEvaluator::wait(double seconds) {
  std::unique_lock lock(state_->mutex);
  return take_result(lock, state_->changed, state_->results, state_->fault, seconds);
}

std::size_t ProgramEvaluator::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size() + state_->results.size() + (state_->running ? 1 : 0);
}

void ProgramEvaluator::cancel() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.clear();
    state_->results.clear();
    if (state_->running) state_->dropped.insert(*state_->running);
  }
  state_->stop_running();
}

void ProgramEvaluator::set_journal(RunJournal* journal) {
  const std::lock_guard lock(state_->mutex);
  state_->journal = journal;
}

}  // namespace ergotune
