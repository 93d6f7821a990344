// Compiles and runs kernels in worker processes on this machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "evaluate/async_evaluator.hpp"
#include "evaluate/compile/compile_farm.hpp"
#include "evaluate/live/data_files.hpp"
#include "evaluate/live/device_worker.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

struct Problem;

/// Uses one device worker per device (LiveOptions::device may name several devices of one kind) and compile workers
/// that run ahead of them, each a child process. A crash, an endless kernel or a lost context ends the child and
/// becomes the status of the configuration; the child is replaced. On a CPU device compiling and measuring never
/// overlap. Faults of the machine (no room for temporary files, no compiler) are not attributed to a configuration:
/// wait() throws them.
class LiveEvaluator : public AsyncEvaluator, public LiveDevice, public ControlledDevice {
 public:
  /// Starts a device worker for each device of the options, waits until they are ready, and then starts one compile
  /// worker, unless the device worker compiles as well. Throws UserError (unknown device, buffers that do not fit, a
  /// reference that fails) and Error (a worker cannot be started).
  LiveEvaluator(const Problem& problem, LiveOptions options);
  /// Uses `start` to start workers.
  LiveEvaluator(const Problem& problem, const LiveOptions& options, const StartWorker& start);
  ~LiveEvaluator() override;

  const DeviceInfo& device() const override { return devices_.front(); }
  std::vector<DeviceInfo> devices() const override { return devices_; }
  /// Empty for a single device.
  std::vector<DeviceShare> gpus() const override;
  const std::string& compiler_identity() const override { return compiler_identity_; }
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return notes_; }
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device = 0) override;

  std::string description() const override;
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override;
  /// Process id of the first device's current worker; 0 while it is being replaced.
  int runner_pid() const;

 private:
  /// Owns the descriptor of a memory file.
  struct Memory {
    int descriptor = -1;
    ~Memory();
  };
  using Event = std::variant<protocol::Message, WorkerLoss>;

  void open_device_workers(const LiveOptions& options, const StartWorker& start, protocol::Setup setup);
  /// If only one CPU is available, the device worker compiles as well if it can.
  void open_compile_workers(const Problem& problem, const LiveOptions& options, const StartWorker& start,
                            protocol::Setup setup);
  void take_reference(std::size_t device, const Configuration& configuration);
  std::string control() const;

  // The functions below are called in the thread only.
  void accept(EvaluationRequest request) override;
  void accept(const JobPointer& job);
  void advance() override;
  double watch(std::vector<pollfd>& polled) override;
  void react(const std::vector<pollfd>& polled, double overslept) override;
  void drop() override;
  /// Visits the workers in the order in which watch() adds them.
  void for_each_worker(const std::function<void(WorkerHandle&, DeviceWorker*)>& visit);
  void start_next(DeviceWorker& worker);
  void check(const Event& event);
  void handle(DeviceWorker& worker, Event event);
  void handle(WorkerHandle& compiler, Event event);
  /// Removes a waiting job; false if it was not waiting.
  bool remove(const JobPointer& job) { return std::erase(waiting_, job) > 0; }
  void refuse(const DeviceWorker& worker, const ControlSetting& setting, const Measurement& refusal);
  void finish(const Job& job, Measurement measurement, const std::string& gpu, bool disturbed = false);

  // Set by the constructor, then constant.
  std::vector<DeviceInfo> devices_;
  bool one_at_a_time_ = false;  ///< devices would disturb each other's measurements
  bool compiling_disturbs_ = false;
  std::string compiler_identity_;
  std::vector<std::string> notes_;
  Memory reference_file_;
  DataFiles data_files_;

  // Used by the thread only.
  std::vector<DeviceWorker> workers_;
  std::optional<CompileFarm> farm_;
  std::vector<JobPointer> waiting_;  ///< in the order of arrival, compiled or not
  std::size_t first_worker_ = 0;     ///< the worker that gets work first
  int failures_in_a_row_ = 0;        ///< consecutive workers that ended before they were ready

  // Read by callers; changed through update().
  std::size_t references_pending_ = 0;  ///< reference_only jobs that have not finished
  std::string control_;                 ///< ids of the controls; empty: none
};

}  // namespace ergotune
