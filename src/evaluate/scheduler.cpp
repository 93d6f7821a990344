#include "evaluate/scheduler.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/problem/load.hpp"
#include "kernel/compile_cache.hpp"
#include "evaluate/machine_fault.hpp"

namespace ergotune {

using namespace protocol;

namespace {

constexpr int kMostFailuresInARow = 5;

std::size_t compilers_for(const LiveOptions& options, const DeviceInfo& device) {
  if (options.jobs > 0) return static_cast<std::size_t>(options.jobs);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return device.is_cpu || cores == 1 ? cores : cores - 1;
}

Setup setup_for(const Problem& problem, const LiveOptions& options) {
  Setup setup;
  setup.problem = serialise(problem);
  setup.device_id = options.device;
  setup.measure = options.measure;
  setup.energy = options.energy;
  setup.energy_seconds = options.energy_seconds;
  setup.sensors = options.sensors;
  if (options.use_cache) {
    CompileCache::limit_from_environment();  // refused here, before the workers meet it
    setup.cache_folder =
        (options.cache_folder.empty() ? CompileCache::default_folder() : options.cache_folder).string();
  }
  return setup;
}

}  // namespace

Scheduler::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

Scheduler::Scheduler(const Problem& problem, const LiveOptions& options, StartLink start) {
  Setup setup = setup_for(data_files_.lay_out(problem), options);
  // What the first correct configuration put out, for the runners after the first: memory that dies with us.
  reference_file_.number = ::memfd_create("ergotune-reference", MFD_CLOEXEC);
  if (reference_file_.number >= 0 && setup.measure.reference_file.empty())
    setup.measure.reference_file = fmt::format("/proc/{}/fd/{}", ::getpid(), reference_file_.number);
  wake_.number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_.number < 0) throw Error("cannot make an event descriptor");

  setup.role = Role::runner;
  slots_.emplace_back(0, start, setup, options.time_limit);
  notes_ = slots_.front().open();
  device_ = slots_.front().device();

  setup.role = Role::compiler;
  setup.device = device_;
  setup.device_id = device_.id;
  farm_.emplace(compilers_for(options, device_), start, setup, options.compile_time_limit, problem);
  compiler_identity_ = farm_->open();
  thread_ = std::thread([this] { loop(); });
}

Scheduler::~Scheduler() {
  post([this] { stop_ = true; });
  thread_.join();
}

// ---- what callers do

void Scheduler::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.number, &one, sizeof one);
}

void Scheduler::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++tasks_posted_;
  }
  wake();
}

void Scheduler::call(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  const std::uint64_t number = ++tasks_posted_;
  wake();
  changed_.wait(lock, [&] { return tasks_done_ >= number; });
}

void Scheduler::submit(EvaluationRequest request) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
  }
  post([this, job] { accept(job); });
}

std::optional<EvaluationResult> Scheduler::wait(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)),
                    [this] { return !results_.empty() || broken_; });
  if (results_.empty()) {
    if (broken_) std::rethrow_exception(broken_);
    return std::nullopt;
  }
  EvaluationResult result = std::move(results_.front());
  results_.pop_front();
  --pending_;
  return result;
}

std::size_t Scheduler::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void Scheduler::cancel() {
  call([this] {
    drop_work();
    const std::lock_guard lock(mutex_);
    ended_.clear();
    results_.clear();
    pending_ = 0;
  });
}

void Scheduler::set_journal(RunJournal* journal) {
  call([this, journal] { journal_ = journal; });
}

void Scheduler::set_controls(std::unique_ptr<SlotControls> controls) {
  call([this, &controls] {
    const std::string id = controls->id();
    slots_.front().set_controls(std::move(controls));
    const std::lock_guard lock(mutex_);
    control_ = id;
  });
}

std::string Scheduler::control() const {
  const std::lock_guard lock(mutex_);
  return control_;
}

// Every compile worker busy, one configuration on each device, and one or two ready to follow it. With clocks
// more: what is seen beforehand can be put in order.
std::size_t Scheduler::capacity() const {
  const std::size_t usual = device_.is_cpu ? farm_->size() : farm_->size() + 3 * slots_.size();
  return control().empty() ? usual : std::max<std::size_t>(8, 2 * usual);
}

void Scheduler::ask_for_reference(std::size_t slot, const Configuration& configuration) {
  auto job = std::make_shared<Job>();
  job->request.id = ~std::uint64_t{0};
  job->request.configuration = configuration;
  job->reference_only = true;
  job->slot = slot;
  {
    const std::lock_guard lock(mutex_);
    ++references_pending_;
  }
  post([this, job] { accept(job); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return references_pending_ == 0 || broken_; });
}

bool Scheduler::establish_reference(const std::vector<Configuration>& candidates) {
  bool everywhere = true;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    bool there = false;
    const auto look = [&] { there = slots_[slot].has_reference(); };
    call(look);
    for (const Configuration& candidate : candidates) {
      if (there) break;
      ask_for_reference(slot, candidate);
      call(look);
    }
    everywhere = everywhere && there;
  }
  return everywhere;
}

int Scheduler::runner_pid() {
  int pid = 0;
  call([&] { pid = slots_.front().seat().process(); });
  return pid;
}

// ---- the scheduler's thread

void Scheduler::loop() {
  while (do_tasks()) {
    try {
      hand_out();
      publish();
      wait_for_workers();
      read_workers();
    } catch (const std::exception&) {
      break_down();
    }
  }
}

bool Scheduler::do_tasks() {
  std::deque<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
  const std::lock_guard lock(mutex_);
  tasks_done_ += tasks.size();
  if (!tasks.empty()) changed_.notify_all();
  return !stop_;
}

void Scheduler::accept(const JobPointer& job) {
  if (over_) return;
  farm_->prepare(*job);
  if (const SlotControls* controls = slots_.front().controls(); controls && !job->reference_only)
    job->setting = controls->setting_of(job->request.configuration);
  waiting_.push_back(job);
}

void Scheduler::hand_out() {
  for (const JobPointer& job : waiting_) farm_->fill(*job);
  // A CPU device shares its cores with the compilers: the two never overlap there.
  const bool alone = device_.is_cpu;
  // The device first: it is what everything waits for.
  for (Slot& slot : slots_) {
    if (slot.seat().empty() && !waiting_.empty()) slot.seat().start();
    if (slot.seat().idle() && !(alone && farm_->busy())) start_next(slot);
  }
  const bool measuring = std::any_of(slots_.begin(), slots_.end(), [this](const Slot& slot) {
    return slot.running() || slot.next(waiting_) != nullptr;
  });
  if (alone && measuring) return;
  for (const Slot& slot : slots_) farm_->hand_out(slot.in_order(waiting_));
}

void Scheduler::start_next(Slot& slot) {
  while (JobPointer job = slot.next(waiting_)) {
    if (slot.controls()) publish();  // a change of clocks takes its time
    if (const auto refusal = slot.apply_setting(*job)) {
      refuse(job->setting, *refusal, slot.board());
      continue;
    }
    for (const JobPointer& other : waiting_) {
      if (other == job) break;
      ++other->passed_by;
    }
    remove(job);
    if (journal_ && !job->reference_only)
      journal_->about_to_run(job->request, static_cast<std::size_t>(&slot - slots_.data()));
    slot.run(std::move(job));
    return;
  }
}

void Scheduler::refuse(const ControlSetting& setting, const Measurement& refusal, const std::string& board) {
  const std::vector<JobPointer> waiting = waiting_;
  for (const JobPointer& job : waiting) {
    if (job->reference_only || job->setting != setting) continue;
    remove(job);
    deliver(*job, refusal, board);
  }
}

void Scheduler::wait_for_workers() {
  std::vector<pollfd> polled{{wake_.number, POLLIN, 0}};
  double until = host_seconds() + 1e6;
  const auto watch = [&](const Seat& seat) {
    if (seat.empty()) return;
    polled.push_back({seat.descriptor(), POLLIN, 0});
    if (seat.deadline() > 0) until = std::min(until, seat.deadline());
  };
  for (Slot& slot : slots_) watch(slot.seat());
  for (const Seat* seat : farm_->seats()) watch(*seat);
  ::poll(polled.data(), polled.size(),
         static_cast<int>(std::clamp(std::ceil((until - host_seconds()) * 1000), 0.0, 1e9)));
  std::uint64_t count;
  (void)!::read(wake_.number, &count, sizeof count);
}

void Scheduler::read_workers() {
  for (Slot& slot : slots_) {
    while (auto event = slot.seat().next()) handle(slot, std::move(*event));
  }
  for (Seat* seat : farm_->seats()) {
    while (auto event = seat->next()) handle(*seat, std::move(*event));
  }
}

/// Throws when the work ends with this event.
void Scheduler::check(const Event& event) {
  if (const auto* lost = std::get_if<Lost>(&event)) {
    if (const std::string full = full_disk_in(lost->ending.last_words); !full.empty()) throw UserError(full);
    if (!lost->served && ++failures_in_a_row_ >= kMostFailuresInARow)
      throw Error(lost->ending.added_to(
          fmt::format("{} workers in a row ended before they could serve, the last with {}",
                      failures_in_a_row_, lost->ending.words)));
    return;
  }
  const Message& message = std::get<Message>(event);
  if (const auto* failed = std::get_if<Failed>(&message)) {
    if (failed->user_error) throw UserError(failed->message);
    throw Error(failed->message);
  }
  if (std::holds_alternative<Ready>(message)) failures_in_a_row_ = 0;
}

void Scheduler::handle(Slot& slot, Event event) {
  check(event);
  std::optional<Slot::Finished> finished;
  if (const auto* lost = std::get_if<Lost>(&event)) {
    finished = slot.take(*lost);
  } else if (auto& message = std::get<Message>(event); auto* ran = std::get_if<Ran>(&message)) {
    finished = slot.take(std::move(*ran));
  } else {
    slot.take(std::get<Ready>(message));
  }
  if (!finished) return;
  if (finished->wanted_again)
    waiting_.insert(waiting_.begin(), std::move(finished->job));
  else
    deliver(*finished->job, std::move(finished->measurement), slot.board());
}

void Scheduler::handle(Seat& compiler, Event event) {
  check(event);
  std::optional<CompileFarm::Failure> failure;
  if (const auto* lost = std::get_if<Lost>(&event)) {
    failure = farm_->take(compiler, *lost);
  } else if (auto* compiled = std::get_if<Compiled>(&std::get<Message>(event))) {
    failure = farm_->take(compiler, std::move(*compiled));
  }
  // One that waits no longer has its result: its setting was refused.
  if (failure && remove(failure->job))
    deliver(*failure->job, failed_measurement(failure->status, failure->message), {});
}

bool Scheduler::remove(const JobPointer& job) { return std::erase(waiting_, job) > 0; }

void Scheduler::deliver(const Job& job, Measurement measurement, const std::string& board) {
  measurement.compile_seconds = job.compile_seconds;
  measurement.tuner_seconds = job.ours;
  if (!job.reference_only) {
    ended_.push_back({job.request.id, job.request.index, std::move(measurement), board});
    return;
  }
  const std::lock_guard lock(mutex_);
  --references_pending_;
  changed_.notify_all();
}

void Scheduler::publish() {
  if (ended_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::move(ended_.begin(), ended_.end(), std::back_inserter(results_));
  ended_.clear();
  changed_.notify_all();
}

void Scheduler::drop_work() {
  waiting_.clear();
  farm_->cancel();
  for (Slot& slot : slots_) slot.cancel();
  const std::lock_guard lock(mutex_);
  references_pending_ = 0;
  pending_ = results_.size();
}

/// Nothing can be measured any more, for the reason that is being handled.
void Scheduler::break_down() {
  over_ = true;
  publish();
  drop_work();
  const std::lock_guard lock(mutex_);
  if (!broken_) broken_ = std::current_exception();
  changed_.notify_all();
}

}  // namespace ergotune
