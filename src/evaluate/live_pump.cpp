#include "evaluate/live_pump.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/problem/load.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

using namespace protocol;

namespace {

constexpr double kStartSeconds = 300;   ///< a worker's start: driver, buffers, reference
constexpr int kMostFailuresInARow = 5;  ///< workers that die before they can serve
constexpr std::size_t kKnownCodeBytes = 256u << 20;

/// Three quarters of the memory that is free now: what a kernel that allocates without end may take.
std::uint64_t memory_limit() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kilobytes = 0;
  while (in >> name >> kilobytes) {
    std::getline(in, unit);
    if (name == "MemAvailable:") return std::max<std::uint64_t>(kilobytes / 4 * 3 * 1024, 1ull << 30);
  }
  return 0;
}

Measurement failure(Status status, const std::string& message) {
  Measurement measurement;
  measurement.status = status;
  measurement.message = message;
  measurement.finished_at = wall_seconds();
  return measurement;
}

std::string with_last_words(std::string message, const std::string& last_words) {
  if (!last_words.empty()) message += "\n" + last_words;
  return message;
}

/// Waits for a worker's first answer while nothing else is going on.
Ready await_ready(WorkerProcess& worker, const char* what) {
  try {
    const std::optional<Message> answer = worker.channel().receive(kStartSeconds);
    if (!answer) throw Error(fmt::format("the {} did not start within {:.0f} s", what, kStartSeconds));
    if (const auto* failed = std::get_if<Failed>(&*answer)) {
      if (failed->user_error) throw UserError(failed->message);
      throw Error(fmt::format("the {} cannot start: {}", what, failed->message));
    }
    if (const auto* ready = std::get_if<Ready>(&*answer)) return *ready;
    throw Error(fmt::format("the {} gave an answer that was not asked for", what));
  } catch (const Disconnected&) {
    const WorkerProcess::Ending ending = worker.ending();
    throw UserError(with_last_words(
        fmt::format(
            "the {} ended with {} while it prepared the problem: its buffers, or the reference that results "
            "are verified against",
            what, ending.words),
        ending.last_words));
  }
}

}  // namespace

LivePump::LivePump(const Problem& problem, LiveOptions options) : options_(std::move(options)) {
  command_ = options_.worker_command;
  if (command_.empty()) command_ = {own_program(), "worker"};
  for (const Parameter& parameter : problem.parameters)
    is_code_.push_back(parameter.kind == ParameterKind::code);

  setup_.problem = serialise(problem);
  setup_.device_id = options_.device;
  setup_.measure = options_.measure;
  setup_.energy = options_.energy;
  setup_.energy_seconds = options_.energy_seconds;
  setup_.sensors = options_.sensors;
  if (options_.use_cache) {
    CompileCache::limit_from_environment();  // refused here, before the workers meet it
    setup_.cache_folder =
        (options_.cache_folder.empty() ? CompileCache::default_folder() : options_.cache_folder).string();
  }
  // What the first correct configuration put out, for the runners after the first: memory that dies with us.
  reference_file_ = ::memfd_create("ergotune-reference", MFD_CLOEXEC);
  if (reference_file_ >= 0 && setup_.measure.reference_file.empty()) {
    setup_.measure.reference_file = fmt::format("/proc/{}/fd/{}", ::getpid(), reference_file_);
  }

  setup_.role = Role::runner;
  runner_.process = std::make_unique<WorkerProcess>(command_, setup_);
  const Ready runner_ready = await_ready(*runner_.process, "runner");
  runner_.ready = true;
  runner_pid_ = runner_.process->pid();
  device_ = runner_ready.device;
  has_reference_ = runner_ready.has_reference;
  notes_ = runner_ready.notes;
  setup_.device = device_;
  setup_.device_id = device_.id;
  // A CPU device shares its memory with everything else; a GPU driver reserves far more than it uses.
  if (device_.is_cpu) setup_.memory_limit = memory_limit();

  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  jobs_ = options_.jobs > 0 ? static_cast<std::size_t>(options_.jobs)
                            : std::max(1u, device_.is_cpu || cores == 1 ? cores : cores - 1);
  compilers_.resize(jobs_);
  for (auto& worker : compilers_) worker = std::make_unique<Worker>();
  Setup compiler_setup = setup_;
  compiler_setup.role = Role::compiler;
  compilers_[0]->process = std::make_unique<WorkerProcess>(command_, compiler_setup);
  compiler_identity_ = await_ready(*compilers_[0]->process, "compiler").compiler;
  compilers_[0]->ready = true;

  wake_descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_descriptor_ < 0) throw Error("cannot make an event descriptor");
  thread_ = std::thread([this] { stand_in(); });
}

LivePump::~LivePump() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  idle_.notify_all();
  wake();
  if (thread_.joinable()) thread_.join();
  for (auto& worker : compilers_) end_worker(*worker);
  end_worker(runner_);
  if (wake_descriptor_ >= 0) ::close(wake_descriptor_);
  if (reference_file_ >= 0) ::close(reference_file_);
}

void LivePump::wake() {
  const std::uint64_t one = 1;
  if (wake_descriptor_ >= 0) (void)!::write(wake_descriptor_, &one, sizeof one);
}

// ---- what other threads call
// ----------------------------------------------------------------------------------------

void LivePump::submit(EvaluationRequest request, bool reference_only) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  job->reference_only = reference_only;
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(job));
    if (!reference_only) ++pending_;
    // Only somebody who is waiting for the workers now must be told; else the next to wait sees it by
    // himself.
    if (waiting_ == 0 && !standing_in_) return;
  }
  wake();
}

template <class F>
void LivePump::lead(double deadline, F&& done) {
  std::unique_lock lock(mutex_);
  if (done()) return;
  ++waiting_;
  lock.unlock();
  {
    std::unique_lock working(step_mutex_, std::try_to_lock);
    if (!working) {
      wake();  // the stand-in steps back
      working.lock();
    }
    while (true) {
      lock.lock();
      const bool over = done();
      lock.unlock();
      const double left = deadline - host_seconds();
      if (over || left <= 0) break;
      step(left);
    }
  }
  lock.lock();
  --waiting_;
}

std::optional<EvaluationResult> LivePump::wait(double seconds) {
  lead(host_seconds() + seconds, [this] { return !results_.empty() || !broken_.empty(); });
  const std::lock_guard lock(mutex_);
  if (results_.empty()) {
    if (!broken_.empty() && broken_by_user_) throw UserError(broken_);
    if (!broken_.empty()) throw Error(broken_);
    return std::nullopt;
  }
  EvaluationResult result = std::move(results_.front());
  results_.pop_front();
  --pending_;
  return result;
}

std::optional<EvaluationResult> LivePump::wait_for_reference(double seconds) {
  lead(host_seconds() + seconds, [this] { return !references_.empty() || !broken_.empty(); });
  const std::lock_guard lock(mutex_);
  if (references_.empty()) return std::nullopt;
  EvaluationResult result = std::move(references_.front());
  references_.pop_front();
  return result;
}

std::size_t LivePump::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void LivePump::cancel() {
  wake();
  const std::lock_guard working(step_mutex_);
  drop_everything();
}

void LivePump::set_journal(RunJournal* journal) {
  const std::lock_guard lock(journal_mutex_);
  journal_ = journal;
}

void LivePump::note(const Job& job) {
  if (job.reference_only) return;
  const std::lock_guard lock(journal_mutex_);
  if (journal_) journal_->about_to_run(job.request);
}

bool LivePump::has_reference() const {
  const std::lock_guard lock(mutex_);
  return has_reference_;
}

std::vector<std::string> LivePump::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

int LivePump::runner_pid() const {
  const std::lock_guard lock(mutex_);
  return runner_pid_;
}

// ---- the pump's thread
// ----------------------------------------------------------------------------------------------

void LivePump::stand_in() {
  constexpr double kPatience = 0.02;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      idle_.wait_for(lock, std::chrono::duration<double>(kPatience), [this] { return stop_; });
      if (stop_) return;
      const bool needed = waiting_ == 0 && (pending_ > results_.size() || !submitted_.empty());
      if (!needed) continue;
    }
    const std::unique_lock working(step_mutex_, std::try_to_lock);
    if (!working) continue;
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        standing_in_ = !stop_ && waiting_ == 0 && pending_ > results_.size();
        if (!standing_in_) break;
      }
      step(kPatience);
    }
  }
}

void LivePump::step(double patience) {
  const auto answers = [this] {
    const std::lock_guard lock(mutex_);
    return results_.size() + references_.size() + (broken_.empty() ? 0 : 1);
  };
  const std::size_t before = answers();
  take_submitted();
  hand_out();
  std::vector<pollfd> polled{{wake_descriptor_, POLLIN, 0}};
  std::vector<Worker*> workers{nullptr};
  double until = host_seconds() + std::min(patience, 1e6);
  const auto watch = [&](Worker& worker) {
    if (!worker.process) return;
    polled.push_back({worker.process->channel().descriptor(), POLLIN, 0});
    workers.push_back(&worker);
    if (worker.deadline > 0) until = std::min(until, worker.deadline);
  };
  watch(runner_);
  for (auto& worker : compilers_) watch(*worker);
  if (answers() != before) until = 0;  // what handing out has brought to an end has no answer to wait for
  const auto milliseconds =
      static_cast<int>(std::clamp(std::ceil((until - host_seconds()) * 1000), 0.0, 1e9));
  if (::poll(polled.data(), polled.size(), milliseconds) > 0) {
    if (polled[0].revents != 0) {
      std::uint64_t count;
      (void)!::read(wake_descriptor_, &count, sizeof count);
    }
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) read_worker(*workers[i], workers[i] == &runner_);
    }
  }
  check_deadlines();
  // The device's next configuration does not wait until somebody asks for a result again.
  hand_out();
}

void LivePump::hand_out() {
  try {
    dispatch();
  } catch (const std::exception& error) {
    end_all(fmt::format("a worker cannot be started: {}", error.what()));
  }
}

void LivePump::take_submitted() {
  const std::lock_guard lock(mutex_);
  for (auto& job : submitted_) to_compile_.push_back(std::move(job));
  submitted_.clear();
}

/// When this returns nothing runs any more and nothing more is announced.
void LivePump::drop_everything() {
  take_submitted();
  to_compile_.clear();
  to_run_.clear();
  for (auto& worker : compilers_) {
    if (worker->job) end_worker(*worker);
  }
  if (runner_.job) end_worker(runner_);
  const std::lock_guard lock(mutex_);
  results_.clear();
  references_.clear();
  pending_ = 0;
}

bool LivePump::compile_allowed() const {
  if (!device_.is_cpu) return true;
  return !runner_.job && to_run_.empty();
}

std::string LivePump::code_key(const Configuration& configuration) const {
  std::string key;
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    if (i < is_code_.size() && is_code_[i]) key += configuration[i].to_literal() + ",";
  }
  return key;
}

void LivePump::dispatch() {
  // Code that is known needs no compiler: another clock, a repetition.
  for (auto job = to_compile_.begin(); job != to_compile_.end();) {
    const auto known = known_code_.find(code_key((*job)->request.configuration));
    if (known == known_code_.end()) {
      ++job;
      continue;
    }
    (*job)->binary = known->second;
    to_run_.push_back(std::move(*job));
    job = to_compile_.erase(job);
  }
  std::size_t starting = 0;
  for (auto& worker : compilers_) {
    if (to_compile_.empty() || !compile_allowed()) break;
    if (worker->job) continue;
    if (!worker->process && starting < to_compile_.size()) start_worker(*worker, Role::compiler);
    if (!worker->ready) {
      starting += worker->process != nullptr;
      continue;
    }
    JobPointer job = std::move(to_compile_.front());
    to_compile_.pop_front();
    start_compile(*worker, std::move(job));
  }
  const bool compiling = std::any_of(compilers_.begin(), compilers_.end(),
                                     [](const auto& worker) { return worker->job != nullptr; });
  if (!runner_.process && (!to_run_.empty() || compiling || !to_compile_.empty()))
    start_worker(runner_, Role::runner);
  const bool free = runner_.ready && !runner_.job && !(device_.is_cpu && compiling);
  if (free && !to_run_.empty()) {
    JobPointer job = std::move(to_run_.front());
    to_run_.pop_front();
    start_run(std::move(job));
  }
}

void LivePump::start_compile(Worker& worker, JobPointer job) {
  worker.job = job;
  worker.sent_at = host_seconds();
  worker.deadline = worker.sent_at + options_.compile_time_limit;
  try {
    worker.process->channel().send(Compile{job->request.id, job->request.configuration});
  } catch (const Disconnected&) {
    worker_died(worker, false);
    return;
  }
}

void LivePump::start_run(JobPointer job) {
  note(*job);
  Run run;
  run.id = job->request.id;
  run.configuration = job->request.configuration;
  run.binary = *job->binary;
  run.options.give_up_above = job->request.repeat ? 1e300 : job->request.give_up_above;
  run.options.objective_quantity = job->request.objective_quantity;
  run.options.reference_only = job->reference_only;
  runner_.job = std::move(job);
  runner_.sent_at = host_seconds();
  runner_.deadline = runner_.sent_at + options_.time_limit;
  try {
    runner_.process->channel().send(run);
  } catch (const Disconnected&) {
    worker_died(runner_, true);
  }
}

void LivePump::read_worker(Worker& worker, bool is_runner) {
  try {
    // Everything that is whole, nothing that would block.
    while (worker.process) {
      std::optional<Message> message = worker.process->channel().receive(0);
      if (!message) return;
      if (is_runner) {
        handle_runner(*message);
      } else {
        handle_compiler(worker, *message);
      }
    }
  } catch (const Disconnected&) {
    worker_died(worker, is_runner);
  } catch (const ProtocolError& error) {
    // A kernel has trampled on the worker's memory: it is as good as dead.
    worker.process->kill();
    if (worker.job)
      fail(worker.job, Status::runtime_error, fmt::format("the worker was damaged: {}", error.what()));
    worker.job.reset();
    end_worker(worker);
  }
}

void LivePump::handle_compiler(Worker& worker, Message& message) {
  if (const auto* failed = std::get_if<Failed>(&message)) {
    end_all(failed->message, failed->user_error);
    return;
  }
  if (std::holds_alternative<Ready>(message)) {
    worker.ready = true;
    worker.deadline = 0;
    failures_in_a_row_ = 0;
    return;
  }
  auto* compiled = std::get_if<Compiled>(&message);
  if (!compiled || !worker.job || compiled->id != worker.job->request.id) {
    throw ProtocolError("an answer that nobody asked for");
  }
  JobPointer job = std::move(worker.job);
  worker.job.reset();
  worker.deadline = 0;
  job->compile_seconds = compiled->seconds;
  job->ours += std::max(0.0, host_seconds() - worker.sent_at - compiled->seconds);
  if (compiled->status != Status::ok) {
    fail(job, compiled->status, compiled->message);
    return;
  }
  auto binary = std::make_shared<const Binary>(std::move(compiled->binary));
  if (known_bytes_ + binary->bytes.size() > kKnownCodeBytes) {
    known_code_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += binary->bytes.size();
  known_code_[code_key(job->request.configuration)] = binary;
  job->binary = std::move(binary);
  to_run_.push_back(std::move(job));
}

void LivePump::handle_runner(const Message& message) {
  if (const auto* failed = std::get_if<Failed>(&message)) {
    end_all(failed->message, failed->user_error);
    return;
  }
  if (const auto* ready = std::get_if<Ready>(&message)) {
    runner_.ready = true;
    runner_.deadline = 0;
    failures_in_a_row_ = 0;
    const std::lock_guard lock(mutex_);
    has_reference_ = ready->has_reference;
    return;
  }
  const auto* ran = std::get_if<Ran>(&message);
  if (!ran || !runner_.job || ran->id != runner_.job->request.id) {
    throw ProtocolError("an answer that nobody asked for");
  }
  JobPointer job = std::move(runner_.job);
  runner_.job.reset();
  runner_.deadline = 0;
  job->ours += std::max(0.0, host_seconds() - runner_.sent_at - ran->seconds);
  {
    const std::lock_guard lock(mutex_);
    has_reference_ = ran->has_reference;
  }
  const bool healthy = ran->healthy;
  finish(job, ran->measurement);
  if (!healthy) end_worker(runner_);
}

void LivePump::worker_died(Worker& worker, bool is_runner) {
  if (!worker.process) return;
  worker.process->kill();
  const WorkerProcess::Ending ending = worker.process->ending();
  JobPointer job = std::move(worker.job);
  const bool served = worker.ready;
  worker.job.reset();
  end_worker(worker);
  if (job) {
    std::string words;
    if (ending.by_signal && ending.signal == SIGKILL) {
      words = "the system killed the process, most likely because memory ran out";
    } else {
      words =
          fmt::format("{} ended with {}", is_runner ? "the kernel's process" : "the compiler", ending.words);
    }
    fail(job, is_runner ? Status::runtime_error : Status::compile_error,
         with_last_words(words, ending.last_words));
    return;
  }
  if (!served && ++failures_in_a_row_ >= kMostFailuresInARow) {
    end_all(with_last_words(fmt::format("{} workers in a row ended before they could serve, the last with {}",
                                        failures_in_a_row_, ending.words),
                            ending.last_words));
  }
}

void LivePump::worker_late(Worker& worker, bool is_runner) {
  JobPointer job = std::move(worker.job);
  const bool served = worker.ready;
  worker.job.reset();
  end_worker(worker);
  if (job) {
    fail(job, Status::timeout,
         is_runner ? fmt::format("stopped after {:g} s on the device (--time-limit)", options_.time_limit)
                   : fmt::format("the compiler was stopped after {:g} s", options_.compile_time_limit));
  } else if (!served && ++failures_in_a_row_ >= kMostFailuresInARow) {
    end_all(fmt::format("{} workers in a row did not start in time", failures_in_a_row_));
  }
}

void LivePump::check_deadlines() {
  const double now = host_seconds();
  if (runner_.process && runner_.deadline > 0 && now >= runner_.deadline) worker_late(runner_, true);
  for (auto& worker : compilers_) {
    if (worker->process && worker->deadline > 0 && now >= worker->deadline) worker_late(*worker, false);
  }
}

void LivePump::start_worker(Worker& worker, Role role) {
  Setup setup = setup_;
  setup.role = role;
  worker.process = std::make_unique<WorkerProcess>(command_, setup);
  worker.ready = false;
  worker.deadline = host_seconds() + kStartSeconds;
  if (role == Role::runner) {
    const std::lock_guard lock(mutex_);
    runner_pid_ = worker.process->pid();
  }
}

void LivePump::end_worker(Worker& worker) {
  if (worker.process) {
    worker.process->kill();
    worker.process.reset();
  }
  worker.job.reset();
  worker.ready = false;
  worker.deadline = 0;
  if (&worker == &runner_) {
    const std::lock_guard lock(mutex_);
    runner_pid_ = 0;
  }
}

void LivePump::finish(const JobPointer& job, Measurement measurement) {
  measurement.compile_seconds = job->compile_seconds;
  measurement.tuner_seconds = job->ours;
  EvaluationResult result;
  result.id = job->request.id;
  result.index = job->request.index;
  result.measurement = std::move(measurement);
  {
    const std::lock_guard lock(mutex_);
    (job->reference_only ? references_ : results_).push_back(std::move(result));
  }
}

void LivePump::fail(const JobPointer& job, Status status, const std::string& message) {
  finish(job, failure(status, message));
}

void LivePump::end_all(std::string why, bool user_error) {
  for (auto& worker : compilers_) end_worker(*worker);
  end_worker(runner_);
  to_compile_.clear();
  to_run_.clear();
  {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) {
      broken_ = std::move(why);
      broken_by_user_ = user_error;
    }
    pending_ = results_.size();
  }
}

}  // namespace ergotune
