// One device with its worker process (the runner), its controls and its expected outputs. One configuration runs at a
// time.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluate/compile/worker_handle.hpp"
#include "evaluate/live/live_device.hpp"
#include "evaluate/live/serial_device.hpp"

namespace ergotune {

class DeviceWorker {
 public:
  struct Finished {
    JobPointer job;
    Measurement measurement;
    /// It has to run (again): this run was the initial observation of the device, was killed, or had another setting or
    /// other conditions than it should.
    bool must_rerun = false;
    /// As in EvaluationResult.
    bool disturbed = false;
  };

  /// `time_limit` in s for one configuration on the device.
  DeviceWorker(std::size_t number, const StartWorker& start, const protocol::Setup& setup, double time_limit)
      : number_(number), time_limit_(time_limit), handle_(start, setup) {}

  /// Starts the runner, waits for it and returns its notes. Throws as WorkerHandle::start_and_wait does. The runner may
  /// have been started before, so that several start in parallel.
  std::vector<std::string> open(const std::atomic<bool>* interrupted = nullptr);
  WorkerHandle& handle() { return handle_; }
  const WorkerHandle& handle() const { return handle_; }
  const DeviceInfo& device() const { return device_; }
  /// Identity of the compiler, if the runner compiles as well; else empty.
  const std::string& compiler() const { return compiler_; }
  /// EvaluationResult::gpu of its results.
  const std::string& gpu() const { return gpu_of(device_); }
  /// Its statistics so far.
  DeviceShare state() const;
  /// Expected outputs exist, or none are needed.
  bool has_reference() const { return has_reference_; }
  bool running() const { return job_ || cancelled_; }

  void set_controls(std::unique_ptr<DeviceControls> controls) { controls_ = std::move(controls); }
  const DeviceControls* controls() const { return controls_.get(); }

  /// The jobs of `waiting` that may run here, ordered so that clocks change seldom.
  std::vector<JobPointer> in_order(const std::vector<JobPointer>& waiting) const;
  bool may_run(const Job& job) const {
    return (!job.device || *job.device == number_) && !job.refused_by.contains(number_);
  }
  /// The job of `waiting` that runs here next; null if there is none or it has to be compiled first. The current
  /// setting is kept while any request waits for it: changing clocks twice takes longer than waiting for a compiler. No
  /// request is passed over forever (kPatience): a strategy expects its results roughly in the order of its requests.
  JobPointer next(const std::vector<JobPointer>& waiting) const;
  /// Applies a job's setting before run(). If the device refuses it, returns the result for all jobs with that setting,
  /// unless another device can run them.
  std::optional<Measurement> apply_setting(const Job& job);
  void run(JobPointer job);
  std::size_t number() const { return number_; }
  /// Number of later requests that may run before an older one to avoid a change of setting.
  static constexpr int kPatience = 16;

  /// Handle the runner's answers. Finished::must_rerun is true if the job has to run again.
  void take(const protocol::Ready& ready) { has_reference_ = ready.has_reference; }
  std::optional<Finished> take(protocol::Ran ran);
  std::optional<Finished> take(const WorkerLoss& lost);
  /// Drops the running job. If it ends soon, the runner serves on, since starting another takes longer.
  void cancel();

 private:
  bool sets_clocks(const Job& job) const { return controls_ && !job.reference_only && !job.request.resources_only; }
  bool disturbed(const EvaluationRequest& request, Measurement& measurement);

  std::size_t number_;
  double time_limit_;
  DeviceInfo device_;
  std::string compiler_;
  bool has_reference_ = false;
  // Members are destroyed in reverse order: the runner, which may be measuring, ends before the clocks are restored.
  std::unique_ptr<DeviceControls> controls_;
  WorkerHandle handle_;
  JobPointer job_;
  bool cancelled_ = false;                   ///< the runner still runs a job that was dropped
  RunOptions options_;                       ///< of the running job
  std::set<std::string> reference_reasons_;  ///< reasons for reduced clocks during the reference's run here
  bool compares_ = false;                    ///< a reference has run here
  std::uint64_t results_ = 0;
  double busy_ = 0, opened_at_ = 0;  ///< s; host_seconds()
};

}  // namespace ergotune
