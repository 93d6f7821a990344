// Base of evaluators that measure in the background: a thread, tasks posted by callers, results, cancellation and
// faults.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "evaluate/evaluator.hpp"

namespace ergotune {

/// One thread does the work. Callers post tasks to it and wait for results. One mutex and one condition variable
/// synchronise them, so that a derived class has to lock only what callers read.
class AsyncEvaluator : public Evaluator {
 public:
  AsyncEvaluator(const AsyncEvaluator&) = delete;
  AsyncEvaluator& operator=(const AsyncEvaluator&) = delete;
  ~AsyncEvaluator() override;

  void submit(EvaluationRequest request) final;
  /// After the last finished result has been returned, throws the exception that ended the work, if one did.
  std::optional<EvaluationResult> wait(double seconds) final;
  std::size_t pending() const final;
  /// When this returns, nothing runs and the journal receives nothing more.
  void cancel() override;
  /// When this returns, the previous journal is no longer used.
  void set_journal(RunJournal* journal) final;

 protected:
  AsyncEvaluator();
  /// start_thread() is called by the constructor, end_thread() by the destructor of the class that implements the
  /// functions below.
  void start_thread();
  void end_thread();

  // Implemented by derived classes and called in the thread. An exception ends the work: wait() throws it.
  virtual void accept(EvaluationRequest request) = 0;
  /// Does everything that can be done without waiting.
  virtual void advance() = 0;
  /// Adds the descriptors to poll; returns the time at which advance() is called even without input, host_seconds().
  virtual double watch(std::vector<pollfd>& polled);
  /// Called after poll() with its results. `overslept`: s by which the wait exceeded its timeout, and that passed since
  /// the wait before: much only where the process was suspended.
  virtual void react(const std::vector<pollfd>& polled, double overslept);
  /// Drops all accepted requests without a result and ends running ones.
  virtual void drop() = 0;
  /// Called repeatedly by callers that wait for the thread: ends whatever keeps advance() from returning.
  virtual void interrupt() {}

  // For use in the thread.
  /// Adds a result, which wait() can return after the next publish(). advance() is always followed by publish().
  void deliver(EvaluationResult result) { ended_.push_back(std::move(result)); }
  void publish();
  /// Records in the journal that a request is about to run.
  void note_run(const EvaluationRequest& request, std::size_t device);
  bool failed() const { return failed_; }

  // For use by callers.
  /// Has the thread execute `task` and waits for its end.
  void call(std::function<void()> task) const;
  /// Executes `change` on data that callers read, and wakes the callers waiting in await().
  template <class Change>
  void update(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  /// Waits until `condition` holds, the work has ended, or `seconds` have passed. Returns false in the last case.
  template <class Condition>
  bool await(double seconds, Condition condition) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience(seconds), [&] { return fault_ || condition(); });
  }
  /// Throws the exception that ended the work, if one did.
  void rethrow_fault() const;

  mutable std::mutex mutex_;  ///< guards what update() changes

 private:
  static std::chrono::duration<double> patience(double seconds);
  std::uint64_t post(std::function<void()> task) const;
  void finish(std::uint64_t task);
  void run();
  bool do_tasks();
  void sleep();
  void fail();

  int wake_ = -1;
  // Used by the thread only.
  std::vector<EvaluationResult> ended_;  ///< not yet published
  std::vector<pollfd> polled_;
  double awake_ = 0;  ///< host_seconds() when the last wait ended
  bool failed_ = false, stop_ = false;

  mutable std::condition_variable changed_;
  mutable std::deque<std::function<void()>> tasks_;
  mutable std::uint64_t tasks_posted_ = 0;
  std::uint64_t tasks_done_ = 0;
  std::deque<EvaluationResult> results_;
  std::size_t pending_ = 0;   ///< requests accepted and not yet returned by wait()
  std::exception_ptr fault_;  ///< the exception that ended the work; null while it goes on
  std::mutex journal_mutex_;
  RunJournal* journal_ = nullptr;
  std::thread thread_;
};

}  // namespace ergotune
