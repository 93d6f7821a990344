// What evaluators that measure in the background have in common: a thread, the tasks that callers leave it, results,
// the end by cancellation or by a fault.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "evaluate/evaluator.hpp"

namespace ergotune {

/// One thread does the work. Callers leave it tasks and wait for results; one mutex and one condition variable stand
/// between them and it, so that nothing of a derived class needs a lock but what callers read.
class AsyncEvaluator : public Evaluator {
 public:
  AsyncEvaluator(const AsyncEvaluator&) = delete;
  AsyncEvaluator& operator=(const AsyncEvaluator&) = delete;
  ~AsyncEvaluator() override;

  void submit(EvaluationRequest request) final;
  /// Throws what has ended the work, once the results that there were are handed out.
  std::optional<EvaluationResult> wait(double seconds) final;
  std::size_t pending() const final;
  /// When this returns nothing runs any more and nothing more is noted.
  void cancel() override;
  /// When this returns the journal from before is not used any more.
  void set_journal(RunJournal* journal) final;

 protected:
  AsyncEvaluator();
  /// By the constructor of the class that implements what follows, and by its destructor.
  void start_thread();
  void end_thread();

  // What derived classes do, in the thread. What they throw ends the work: wait() throws it.
  virtual void accept(EvaluationRequest request) = 0;
  /// Does what can be done now.
  virtual void advance() = 0;
  /// Adds the descriptors to wait for; returns when to go on without them, on host_seconds().
  virtual double watch(std::vector<pollfd>& polled);
  /// After that wait, with what poll() found, which lasted `overslept` s longer than it should have.
  virtual void react(const std::vector<pollfd>& polled, double overslept);
  /// Drops everything that was accepted and has no result; what runs is ended.
  virtual void drop() = 0;
  /// By callers who wait for the thread, again and again: ends what keeps advance() from returning.
  virtual void interrupt() {}

  // For the thread.
  /// A result, which wait() gets by the next publish(); advance() is followed by one.
  void deliver(EvaluationResult result) { ended_.push_back(std::move(result)); }
  void publish();
  /// Writes it into the journal.
  void note_run(const EvaluationRequest& request, std::size_t device);
  bool failed() const { return failed_; }

  // For callers.
  /// Has `task` done by the thread and waits for its end.
  void call(std::function<void()> task) const;
  /// Changes what callers read, and wakes those who wait for it.
  template <class Change>
  void update(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  /// Waits until `condition` holds, the work has ended, or `seconds` are over. False in the last case.
  template <class Condition>
  bool await(double seconds, Condition condition) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience(seconds), [&] { return fault_ || condition(); });
  }
  /// Throws what has ended the work, if it has ended.
  void rethrow_fault() const;

  mutable std::mutex mutex_;  ///< of what update() changes

 private:
  static std::chrono::duration<double> patience(double seconds);
  std::uint64_t post(std::function<void()> task) const;
  void finish(std::uint64_t task);
  void run();
  bool do_tasks();
  void sleep();
  void fail();

  int wake_ = -1;
  // The thread's own.
  std::vector<EvaluationResult> ended_;  ///< not yet published
  std::vector<pollfd> polled_;
  bool failed_ = false, stop_ = false;

  mutable std::condition_variable changed_;
  mutable std::deque<std::function<void()>> tasks_;
  mutable std::uint64_t tasks_posted_ = 0;
  std::uint64_t tasks_done_ = 0;
  std::deque<EvaluationResult> results_;
  std::size_t pending_ = 0;   ///< requests taken and not yet returned
  std::exception_ptr fault_;  ///< why nothing can be measured any more
  std::mutex journal_mutex_;
  RunJournal* journal_ = nullptr;
  std::thread thread_;
};

}  // namespace ergotune
