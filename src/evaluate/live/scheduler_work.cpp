// The scheduler's own thread: moves configurations between compile workers and slots.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "evaluate/live/scheduler.hpp"

namespace ergotune {

using namespace protocol;

namespace {
constexpr int kMostFailuresInARow = 5;
constexpr double kLook = 1;   ///< s between two looks at the clock while a worker is awaited
constexpr double kStood = 1;  ///< s; who wakes that much too late stood still
}  // namespace

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
  farm_->fill(*job);
  if (const std::string& board = job->request.board; !board.empty()) {
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [&](const DeviceWorker& s) { return s.board() == board; });
    if (slot == slots_.end())
      return deliver(*job, failed_measurement(Status::launch_error, "there is no board " + board), board);
    job->slot = slot->number();
  }
  if (const DeviceControls* controls = slots_.front().controls(); controls && !job->reference_only)
    job->setting = controls->setting_of(job->request.configuration);
  waiting_.push_back(job);
}

bool Scheduler::another_session_measures() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const DeviceWorker& slot) { return slot.running(); });
}

void Scheduler::hand_out() {
  if (waiting_.empty()) return;
  // The device first: it is what everything waits for.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    DeviceWorker& slot = slots_[(first_slot_ + i) % slots_.size()];
    if (slot.seat().empty() && !waiting_.empty()) slot.seat().start();
    if (!slot.seat().idle() || (compiling_disturbs_ && farm_->busy())) continue;
    if (one_at_a_time_ && another_session_measures()) continue;
    start_next(slot);
    if (slot.running()) first_slot_ = slot.number() + 1;  // each in its turn
  }
  const auto measures = [this](const DeviceWorker& slot) { return slot.running() || slot.next(waiting_) != nullptr; };
  if (compiling_disturbs_ && std::any_of(slots_.begin(), slots_.end(), measures)) return;
  if (!farm_->has_room()) return;
  if (control_.empty()) return farm_->hand_out(waiting_);
  std::vector<JobPointer> in_order;
  for (const DeviceWorker& slot : slots_) std::ranges::copy(slot.in_order(waiting_), std::back_inserter(in_order));
  farm_->hand_out(
      in_order);  // once for all: it remembers whether something of this round has to wait for other sessions
}

void Scheduler::start_next(DeviceWorker& slot) {
  while (JobPointer job = slot.next(waiting_)) {
    if (slot.controls()) publish();  // a change of clocks takes its time
    if (const auto refusal = slot.apply_setting(*job)) {
      refuse(slot, job->setting, *refusal);
      continue;
    }
    for (const JobPointer& other : waiting_) {
      if (other == job) break;
      ++other->passed_by;
    }
    remove(job);
    if (journal_ && !job->reference_only) journal_->about_to_run(job->request, slot.number());
    slot.run(std::move(job));
    return;
  }
}

/// A board refuses a setting for itself alone: what another may run waits for that one.
void Scheduler::refuse(const DeviceWorker& slot, const ControlSetting& setting, const Measurement& refusal) {
  const std::vector<JobPointer> waiting = waiting_;
  for (const JobPointer& job : waiting) {
    if (job->reference_only || job->request.resources_only || job->setting != setting || !slot.may_run(*job)) continue;
    job->refused_by.insert(slot.number());
    if (std::ranges::any_of(slots_, [&](const DeviceWorker& other) { return other.may_run(*job); })) continue;
    remove(job);
    deliver(*job, refusal, slot.board(), slot.controls()->disturbed());
  }
}

void Scheduler::wait_for_workers() {
  polled_.assign(1, {wake_.number, POLLIN, 0});
  double until = host_seconds() + 1e6;
  const auto watch = [&](const WorkerHandle& seat) {
    polled_.push_back({seat.empty() ? -1 : seat.descriptor(), POLLIN, 0});
    if (!seat.empty() && seat.deadline() > 0) until = std::min(until, seat.deadline());
  };
  for (DeviceWorker& slot : slots_) watch(slot.seat());
  for (const WorkerHandle* seat : farm_->seats()) watch(*seat);
  const double now = host_seconds();
  if (farm_->starved()) until = std::min(until, now + 0.02);
  if (until < now + 1e5) until = std::clamp(until, now, now + kLook);
  ::poll(polled_.data(), polled_.size(), static_cast<int>(std::clamp(std::ceil((until - now) * 1000), 0.0, 1e9)));
  // A batch system suspends a job, a container is paused: the workers stood still as well, and are not late for that.
  if (const double stood = host_seconds() - until; stood > kStood) {
    for (DeviceWorker& slot : slots_) slot.seat().put_off(stood);
    for (WorkerHandle* seat : farm_->seats()) seat->put_off(stood);
  }
  std::uint64_t count;
  if (polled_.front().revents != 0) (void)!::read(wake_.number, &count, sizeof count);
}

/// Only those are asked that have something to say: many may wait.
void Scheduler::read(std::size_t place, WorkerHandle& seat, const std::function<void(Event)>& handle) {
  const bool speaks = polled_[place].revents != 0;
  const bool late = !seat.empty() && seat.deadline() > 0 && host_seconds() >= seat.deadline();
  if (!speaks && !late) return;
  while (auto event = seat.next()) handle(std::move(*event));
}

void Scheduler::read_workers() {
  std::size_t place = 1;
  for (DeviceWorker& slot : slots_) read(place++, slot.seat(), [&](Event event) { handle(slot, std::move(event)); });
  for (WorkerHandle* seat : farm_->seats()) read(place++, *seat, [&](Event event) { handle(*seat, std::move(event)); });
}

/// Throws when the work ends with this event.
void Scheduler::check(const Event& event) {
  if (const auto* lost = std::get_if<Lost>(&event)) {
    if (const std::string full = full_disk_in(lost->ending.last_words); !full.empty()) throw UserError(full);
    if (!lost->served && ++failures_in_a_row_ >= kMostFailuresInARow)
      throw Error(
          lost->ending.added_to(fmt::format("{} workers in a row ended before they could serve, the last with {}",
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

void Scheduler::handle(DeviceWorker& slot, Event event) {
  if (farm_->compiles_at(slot.seat())) return handle(slot.seat(), std::move(event));
  check(event);
  std::optional<DeviceWorker::Finished> finished;
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
    deliver(*finished->job, std::move(finished->measurement), slot.board(), finished->disturbed);
}

void Scheduler::handle(WorkerHandle& compiler, Event event) {
  check(event);
  std::optional<CompileFarm::Failure> failure;
  if (const auto* lost = std::get_if<Lost>(&event)) {
    failure = farm_->take(compiler, *lost);
  } else if (auto* compiled = std::get_if<Compiled>(&std::get<Message>(event))) {
    failure = farm_->take(compiler, std::move(*compiled), waiting_);
  }
  // One that waits no longer has its result: its setting was refused.
  if (failure && remove(failure->job))
    deliver(*failure->job, failed_measurement(failure->status, failure->message), {});
}

bool Scheduler::remove(const JobPointer& job) { return std::erase(waiting_, job) > 0; }

void Scheduler::deliver(const Job& job, Measurement measurement, const std::string& board, bool disturbed) {
  measurement.compile_seconds = job.compile_seconds;
  measurement.tuner_seconds = job.ours;
  if (!job.reference_only) {
    ended_.push_back({job.request.id, job.request.index, std::move(measurement), board, disturbed});
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
  for (DeviceWorker& slot : slots_) slot.cancel();
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
