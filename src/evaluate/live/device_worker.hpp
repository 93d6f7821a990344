// One device with its worker process (the runner), its controls and its reference. One configuration runs at a time.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluate/compile/job.hpp"
#include "evaluate/compile/worker_handle.hpp"
#include "evaluate/live/live_device.hpp"
#include "evaluate/live/serial_device.hpp"

namespace ergotune {

class DeviceWorker {
 public:
  struct Finished {
    JobPointer job;
    Measurement measurement;
    /// It has to run (once more): this was a look at the device, or it ran under another setting than its own.
    bool wanted_again = false;
    /// As in EvaluationResult.
    bool disturbed = false;
  };

  /// `time_limit` in s for one configuration on the device.
  DeviceWorker(std::size_t number, const StartWorker& start, const protocol::Setup& setup, double time_limit)
      : number_(number), time_limit_(time_limit), handle_(start, setup) {}

  /// Starts the runner and waits for it; its remarks. Throws as WorkerHandle::start_and_wait does. It may have been
  /// started before, so that several start side by side.
  std::vector<std::string> open();
  WorkerHandle& handle() { return handle_; }
  const WorkerHandle& handle() const { return handle_; }
  const DeviceInfo& device() const { return device_; }
  /// The identity of the compiler that its runner is as well; empty where it is none.
  const std::string& compiler() const { return compiler_; }
  /// EvaluationResult::GPU of its results.
  const std::string& gpu() const { return gpu_of(device_); }
  /// What it has done so far, for users.
  DeviceShare state() const;
  /// There are outputs to compare with, or none are wanted.
  bool has_reference() const { return has_reference_; }
  bool running() const { return job_ != nullptr; }

  void set_controls(std::unique_ptr<DeviceControls> controls) { controls_ = std::move(controls); }
  const DeviceControls* controls() const { return controls_.get(); }

  /// Those of `waiting` that may run here, in the order in which they should: it changes clocks seldom.
  std::vector<JobPointer> in_order(const std::vector<JobPointer>& waiting) const;
  bool may_run(const Job& job) const {
    return (!job.device || *job.device == number_) && !job.refused_by.contains(number_);
  }
  /// The one of `waiting` that runs here next; null when there is none, or when it has to be compiled first.
  /// A setting is left only when no request waits for it any more: going there and back takes longer than waiting
  /// for a compiler. But no request is passed over for ever: a strategy waits for its answers in about the order in
  /// which it asked.
  JobPointer next(const std::vector<JobPointer>& waiting) const;
  /// Brings a job's setting in force, for run(). Where it is refused: what becomes of the job, and of each with that
  /// setting, unless another device takes it.
  std::optional<Measurement> apply_setting(const Job& job);
  void run(JobPointer job);
  std::size_t number() const { return number_; }
  /// Requests that may go before an older one for the sake of its setting.
  static constexpr int kPatience = 16;

  /// The runner's answers.
  void take(const protocol::Ready& ready) { has_reference_ = ready.has_reference; }
  Finished take(protocol::Ran ran);
  std::optional<Finished> take(const Lost& lost);
  /// Ends what runs.
  void cancel();

 private:
  bool sets_clocks(const Job& job) const { return controls_ && !job.reference_only && !job.request.resources_only; }
  bool disturbed(const EvaluationRequest& request, Measurement& measurement);

  std::size_t number_;
  double time_limit_;
  DeviceInfo device_;
  std::string compiler_;
  bool has_reference_ = false;
  // Destroyed in reverse order: the runner, which may still be measuring, ends before the clocks go back.
  std::unique_ptr<DeviceControls> controls_;
  WorkerHandle handle_;
  JobPointer job_;
  RunOptions options_;                       ///< of what runs
  std::set<std::string> reference_reasons_;  ///< that held the clock down while the reference ran here
  bool compares_ = false;                    ///< a reference has run here
  std::uint64_t results_ = 0;
  double busy_ = 0, opened_at_ = 0;  ///< s; host_seconds()
};

}  // namespace ergotune
