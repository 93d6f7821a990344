// The heart of the live evaluator: moves configurations from compile workers to the runner. Whoever waits for
// a result does that work himself, which saves two changes of thread per configuration; a thread of its own
// takes over while nobody waits (a strategy that thinks), so that neither compilers nor the device stand
// idle.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ergotune/evaluate/live.hpp"
#include "evaluate/worker_process.hpp"

namespace ergotune {

class LivePump {
 public:
  /// Starts the first runner and waits until it is ready, then one compile worker. Throws as LiveEvaluator
  /// does.
  LivePump(const Problem& problem, LiveOptions options);
  ~LivePump();

  void submit(EvaluationRequest request, bool reference_only);
  std::optional<EvaluationResult> wait(double seconds);
  /// The next answer to a reference_only request.
  std::optional<EvaluationResult> wait_for_reference(double seconds);
  std::size_t pending() const;
  void cancel();
  void set_journal(RunJournal* journal);

  const DeviceInfo& device() const { return device_; }
  const std::string& compiler_identity() const { return compiler_identity_; }
  bool has_reference() const;
  std::vector<std::string> notes() const;
  std::size_t jobs() const { return jobs_; }
  int runner_pid() const;

 private:
  struct Job {
    EvaluationRequest request;
    bool reference_only = false;
    std::shared_ptr<const Binary> binary;
    double compile_seconds = 0;
    double ours = 0;  ///< s of round trips that neither compiler nor kernel used
  };
  using JobPointer = std::shared_ptr<Job>;
  struct Worker {
    std::unique_ptr<WorkerProcess> process;
    JobPointer job;
    bool ready = false;
    double deadline = 0;  ///< on host_seconds(); 0: none
    double sent_at = 0;
  };

  /// The thread that works while nobody waits.
  void stand_in();
  /// Works until `done` (asked under mutex_) or the deadline.
  template <class F>
  void lead(double deadline, F&& done);

  // All below is done by whoever holds step_mutex_, but for the constructor's first steps.
  /// Hands out work, then waits up to `patience` s for an answer and deals with it.
  void step(double patience);
  void take_submitted();
  void drop_everything();
  void hand_out();
  void dispatch();
  bool compile_allowed() const;
  void start_compile(Worker& worker, JobPointer job);
  void start_run(JobPointer job);
  void handle_compiler(Worker& worker, protocol::Message& message);
  void handle_runner(const protocol::Message& message);
  void read_worker(Worker& worker, bool is_runner);
  void worker_died(Worker& worker, bool is_runner);
  void worker_late(Worker& worker, bool is_runner);
  void start_worker(Worker& worker, protocol::Role role);
  void end_worker(Worker& worker);
  void finish(const JobPointer& job, Measurement measurement);
  void fail(const JobPointer& job, Status status, const std::string& message);
  void check_deadlines();
  void note(const Job& job);
  void end_all(std::string why, bool user_error = false);
  std::string code_key(const Configuration& configuration) const;
  void wake();

  protocol::Setup setup_;
  LiveOptions options_;
  std::vector<std::string> command_;
  std::vector<bool> is_code_;
  DeviceInfo device_;
  std::string compiler_identity_;
  std::size_t jobs_ = 1;
  int reference_file_ = -1;
  int wake_descriptor_ = -1;

  Worker runner_;
  std::vector<std::unique_ptr<Worker>> compilers_;
  std::deque<JobPointer> to_compile_, to_run_;
  std::map<std::string, std::shared_ptr<const Binary>> known_code_;
  std::size_t known_bytes_ = 0;
  int failures_in_a_row_ = 0;

  std::mutex step_mutex_;  ///< held by the one who works
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int waiting_ = 0;           ///< callers inside lead()
  bool standing_in_ = false;  ///< the stand-in works
  std::deque<JobPointer> submitted_;
  std::deque<EvaluationResult> results_, references_;
  std::vector<std::string> notes_;
  std::string broken_;  ///< why nothing can be measured any more
  bool broken_by_user_ = false;
  std::size_t pending_ = 0;
  bool has_reference_ = false, stop_ = false;
  int runner_pid_ = 0;
  std::mutex journal_mutex_;  ///< held while the journal is called: set_journal() waits for that
  RunJournal* journal_ = nullptr;
  std::thread thread_;
};

}  // namespace ergotune
