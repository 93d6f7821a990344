// Measures in this process, for callables that cannot be passed to another process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "evaluate/compile/compile_step.hpp"
#include "evaluate/live/live_device.hpp"
#include "evaluate/live/serial_device.hpp"

namespace ergotune {

/// Compiles and runs on the calling thread, inside wait(). A crash of a kernel ends the session.
class InProcessEvaluator : public Evaluator, public LiveDevice, public ControlledDevice {
 public:
  InProcessEvaluator(const Problem& problem, LiveOptions options);
  /// For adding observers and verifiers.
  Runner& runner() { return runner_; }

  const DeviceInfo& device() const override { return device_->info(); }
  const std::string& compiler_identity() const override { return step_.identity(); }
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return notes_; }
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t = 0) override {
    serial_.set_controls(std::move(session), std::move(parameters));
  }

  std::string description() const override { return serial_.described(device().id + " (" + device().name + ")"); }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return serial_.capacity(); }
  void submit(EvaluationRequest request) override { serial_.add(std::move(request)); }
  std::optional<EvaluationResult> wait(double seconds) override;
  std::size_t pending() const override { return serial_.waiting(); }
  void cancel() override { serial_.clear(); }
  void set_journal(RunJournal* journal) override { journal_ = journal; }

 private:
  CompileOutcome compile(const Configuration& configuration, std::vector<Binary>& binaries);
  Measurement run(const EvaluationRequest& request, const std::vector<Binary>& binaries, const RunOptions& options);

  Problem problem_;
  LiveOptions options_;
  // Members are destroyed in reverse order: the runner ends before the clocks are restored.
  SerialDevice serial_;
  std::unique_ptr<Device> device_;
  CompileStep step_;
  Runner runner_;
  std::vector<std::string> notes_;
  RunJournal* journal_ = nullptr;
};

}  // namespace ergotune
