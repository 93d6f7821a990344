// Kernels compiled and run by worker processes of this machine.
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

/// Compile workers run ahead of one device worker for each device (LiveOptions::device may name several, all of one
/// kind), each a child process. A crash, an endless kernel or a lost context ends the child, becomes that
/// configuration's status, and the child is replaced. On a CPU device compiling and measuring never overlap. What is
/// the machine's fault (no room for temporary files, no compiler) is no configuration's status: wait() throws it.
class LiveEvaluator : public AsyncEvaluator, public LiveDevice, public ControlledDevice {
 public:
  /// Starts a device worker for each of the devices that the options name and waits until they are ready, then one
  /// compile worker unless the device worker compiles as well. Throws UserError (unknown device, buffers that do not
  /// fit, a reference that fails) and Error (a worker cannot be started).
  LiveEvaluator(const Problem& problem, LiveOptions options);
  /// With workers that `start` starts.
  LiveEvaluator(const Problem& problem, const LiveOptions& options, const StartWorker& start);
  ~LiveEvaluator() override;

  const DeviceInfo& device() const override { return devices_.front(); }
  std::vector<DeviceInfo> devices() const override { return devices_; }
  /// Empty where there is one device.
  std::vector<DeviceShare> gpus() const override;
  const std::string& compiler_identity() const override { return compiler_identity_; }
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return notes_; }
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device = 0) override;

  std::string description() const override;
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override;
  /// Process id of the first device's present worker; 0 while it is being replaced.
  int runner_pid() const;

 private:
  /// A descriptor of memory that ends with this object.
  struct Memory {
    int descriptor = -1;
    ~Memory();
  };
  using Event = std::variant<protocol::Message, Lost>;

  void open_device_workers(const LiveOptions& options, const StartWorker& start, protocol::Setup setup);
  /// With one processor the device worker itself compiles, where it can.
  void open_compile_workers(const Problem& problem, const LiveOptions& options, const StartWorker& start,
                            protocol::Setup setup);
  void take_reference(std::size_t device, const Configuration& configuration);
  std::string control() const;

  // All below is done by the thread alone.
  void accept(EvaluationRequest request) override;
  void accept(const JobPointer& job);
  void advance() override;
  double watch(std::vector<pollfd>& polled) override;
  void react(const std::vector<pollfd>& polled, double overslept) override;
  void drop() override;
  /// In the order in which watch() adds them.
  void for_each_worker(const std::function<void(WorkerHandle&, DeviceWorker*)>& visit);
  void start_next(DeviceWorker& worker);
  void check(const Event& event);
  void handle(DeviceWorker& worker, Event event);
  void handle(WorkerHandle& compiler, Event event);
  /// True where it was still waiting.
  bool remove(const JobPointer& job) { return std::erase(waiting_, job) > 0; }
  void refuse(const DeviceWorker& worker, const ControlSetting& setting, const Measurement& refusal);
  void finish(const Job& job, Measurement measurement, const std::string& gpu, bool disturbed = false);

  // Set by the constructor.
  std::vector<DeviceInfo> devices_;
  bool one_at_a_time_ = false;  ///< devices would disturb each other
  bool compiling_disturbs_ = false;
  std::string compiler_identity_;
  std::vector<std::string> notes_;
  Memory reference_file_;
  DataFiles data_files_;

  // The thread's own.
  std::vector<DeviceWorker> workers_;
  std::optional<CompileFarm> farm_;
  std::vector<JobPointer> waiting_;  ///< in the order in which they came; compiled or not
  std::size_t first_worker_ = 0;     ///< that gets work first
  int failures_in_a_row_ = 0;        ///< workers that ended before they could serve

  // What callers read (update()).
  std::size_t references_pending_ = 0;  ///< reference_only jobs without their end
  std::string control_;                 ///< ids of the controls; empty: none
};

}  // namespace ergotune
