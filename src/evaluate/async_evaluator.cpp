#include "evaluate/async_evaluator.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"

namespace ergotune {

AsyncEvaluator::AsyncEvaluator() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw Error("cannot make an event descriptor");
}

AsyncEvaluator::~AsyncEvaluator() { ::close(wake_); }

void AsyncEvaluator::start_thread() {
  thread_ = std::thread([this] { run(); });
}

void AsyncEvaluator::end_thread() {
  if (!thread_.joinable()) return;
  finish(post([this] { stop_ = true; }));
  thread_.join();
}

// Clamped: a longer time would overflow the clock.
std::chrono::duration<double> AsyncEvaluator::patience(double seconds) {
  return std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6));
}

std::uint64_t AsyncEvaluator::post(std::function<void()> task) const {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    number = ++tasks_posted_;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  return number;
}

void AsyncEvaluator::call(std::function<void()> task) const {
  const std::uint64_t number = post(std::move(task));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_done_ >= number; });
}

/// Waits for a task that has to be executed while a configuration runs; interrupts advance() repeatedly.
void AsyncEvaluator::finish(std::uint64_t task) {
  std::unique_lock lock(mutex_);
  while (tasks_done_ < task) {
    lock.unlock();
    interrupt();
    lock.lock();
    changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return tasks_done_ >= task; });
  }
}

void AsyncEvaluator::submit(EvaluationRequest request) {
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
  }
  post([this, request = std::move(request)]() mutable {
    if (!failed_) accept(std::move(request));
  });
}

std::optional<EvaluationResult> AsyncEvaluator::wait(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience(seconds), [&] { return !results_.empty() || fault_; });
  if (results_.empty()) {
    if (fault_) std::rethrow_exception(fault_);
    return std::nullopt;
  }
  EvaluationResult result = std::move(results_.front());
  results_.pop_front();
  --pending_;
  return result;
}

std::size_t AsyncEvaluator::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void AsyncEvaluator::rethrow_fault() const {
  const std::lock_guard lock(mutex_);
  if (fault_) std::rethrow_exception(fault_);
}

void AsyncEvaluator::cancel() {
  finish(post([this] {
    drop();
    ended_.clear();
    const std::lock_guard lock(mutex_);
    results_.clear();
    pending_ = 0;
  }));
}

void AsyncEvaluator::set_journal(RunJournal* journal) {
  const std::lock_guard lock(journal_mutex_);
  journal_ = journal;
}

void AsyncEvaluator::note_run(const EvaluationRequest& request, std::size_t device) {
  const std::lock_guard lock(journal_mutex_);
  if (journal_) journal_->about_to_run(request, device);
}

double AsyncEvaluator::watch(std::vector<pollfd>&) { return host_seconds() + 1e6; }
void AsyncEvaluator::react(const std::vector<pollfd>&, double) {}

void AsyncEvaluator::run() {
  while (do_tasks()) {
    try {
      if (!failed_) advance();
      publish();
      sleep();
    } catch (...) {
      fail();
    }
  }
}

/// Executes posted tasks. Returns false when the thread has to end.
bool AsyncEvaluator::do_tasks() {
  std::deque<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) {
    try {
      task();
    } catch (...) {
      fail();
    }
  }
  if (!tasks.empty()) update([&] { tasks_done_ += tasks.size(); });
  return !stop_;
}

void AsyncEvaluator::sleep() {
  polled_.assign(1, {wake_, POLLIN, 0});
  const double busy = awake_ > 0 ? host_seconds() - awake_ : 0;
  const double until = failed_ ? host_seconds() + 1e6 : watch(polled_);
  ::poll(polled_.data(), polled_.size(),
         static_cast<int>(std::clamp(std::ceil((until - host_seconds()) * 1000), 0.0, 1e9)));
  awake_ = host_seconds();
  std::uint64_t count = 0;
  if (polled_.front().revents != 0) (void)!::read(wake_, &count, sizeof count);
  if (!failed_) react(polled_, busy + std::max(0.0, awake_ - until));
}

void AsyncEvaluator::publish() {
  if (ended_.empty()) return;
  update([this] { std::move(ended_.begin(), ended_.end(), std::back_inserter(results_)); });
  ended_.clear();
}

/// Ends the work with the exception that is being handled.
void AsyncEvaluator::fail() {
  const std::exception_ptr reason = std::current_exception();
  failed_ = true;
  publish();
  drop();
  update([&] {
    pending_ = results_.size();
    if (!fault_) fault_ = reason;
  });
}

}  // namespace ergotune
