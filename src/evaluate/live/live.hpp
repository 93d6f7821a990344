// Live measurements: kernels compiled and run here, by worker processes (LiveEvaluator) or in this process
// (InProcessEvaluator, for callables that cannot leave it).
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/evaluator.hpp"
#include "measure/runner.hpp"

namespace ergotune {

class ControlSession;

/// Compile workers that may be at work at one time, for sessions of one process that share the processor.
class CompileShare {
 public:
  explicit CompileShare(int workers) : left_(workers) {}
  bool take() {
    if (left_.fetch_sub(1) > 0) return true;
    ++left_;
    return false;
  }
  void give() { ++left_; }

 private:
  std::atomic<int> left_;
};

struct LiveOptions : LiveSettings {
  MeasureOptions measure;
  /// Measure energy too.
  bool energy = false;
  /// The command that starts a worker; it gets "--descriptor N --log N" appended. Empty: this program's
  /// `worker`.
  std::vector<std::string> worker_command;
  /// Ids of the devices where there are several, all of one kind; empty: those that `device` names.
  std::vector<std::string> devices;
  /// With sessions beside this one; null: alone.
  std::shared_ptr<CompileShare> compile_share;
  /// From what is set, the rest as above.
  static LiveOptions from(const Settings& settings);
};

/// What a live evaluator offers besides: the device that it found.
class LiveDevice {
 public:
  virtual ~LiveDevice() = default;
  virtual const DeviceInfo& device() const = 0;
  /// All of them, that one first.
  virtual std::vector<DeviceInfo> devices() const { return {device()}; }
  /// Compiler::identity(): part of what determines a session's results.
  virtual const std::string& compiler_identity() const = 0;
  /// Where results are compared with the first correct configuration: takes the first of `candidates` that
  /// runs as that reference, unless there is one already. A resumed session calls it with a configuration
  /// known to be right.
  virtual bool establish_reference(const std::vector<Configuration>& candidates) = 0;
  /// What the workers had to say: a sensor that is not there, a driver's remark.
  virtual std::vector<std::string> notes() const = 0;
  /// From now on the execution parameters (those of `parameters`, the space's in their order, that are not code) are
  /// set through `session` right before a configuration runs, in an order that changes them as seldom as possible. A
  /// setting that the hardware refuses is that configuration's status (unsupported for an invalid value or pair,
  /// launch_error for the rest). Where the clock that ran (quantity core_clock) is not the one asked for, the
  /// measurement gets a warning "asked 1410 MHz, ran 1275 MHz, power cap". Everything goes back when the evaluator
  /// ends. Called before the first submit(), for each of devices() by its position.
  virtual void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                            std::size_t device = 0) = 0;
};

/// Compile workers run ahead of one runner for each device (LiveOptions::device may name several, all of one kind),
/// each a child process. A crash, an endless kernel or a lost context ends the child, becomes that configuration's
/// status, and the child is replaced. On a CPU device compiling and measuring never overlap. What is the machine's
/// fault (no room for temporary files, no compiler) is no configuration's status: wait() throws it.
class LiveEvaluator : public Evaluator, public LiveDevice {
 public:
  /// Starts the runner and waits for it. Throws UserError (unknown device, buffers that do not fit, a
  /// reference that fails) and Error (a worker cannot be started).
  LiveEvaluator(const Problem& problem, LiveOptions options);
  ~LiveEvaluator() override;
  LiveEvaluator(const LiveEvaluator&) = delete;
  LiveEvaluator& operator=(const LiveEvaluator&) = delete;

  const DeviceInfo& device() const override;
  std::vector<DeviceInfo> devices() const override;
  std::vector<DeviceShare> boards() const override;
  const std::string& compiler_identity() const override;
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override;
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device = 0) override;

  std::string description() const override;
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override;
  void submit(EvaluationRequest request) override;
  std::optional<EvaluationResult> wait(double seconds) override;
  std::size_t pending() const override;
  void cancel() override;
  void set_journal(RunJournal* journal) override;
  /// Process id of the present runner; 0 while it is being replaced.
  int runner_pid() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Compiles and runs in this process and on the calling thread, inside wait(). A crash here is a crash of the
/// session.
class InProcessEvaluator : public Evaluator, public LiveDevice {
 public:
  InProcessEvaluator(const Problem& problem, LiveOptions options);
  ~InProcessEvaluator() override;
  /// For observers and verifiers.
  Runner& runner();

  const DeviceInfo& device() const override;
  const std::string& compiler_identity() const override;
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override;
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device = 0) override;

  std::string description() const override;
  Provenance provenance() const override { return Provenance::measured; }
  /// With clocks more than one: what is seen beforehand can be put in order.
  std::size_t capacity() const override;
  void submit(EvaluationRequest request) override;
  std::optional<EvaluationResult> wait(double seconds) override;
  std::size_t pending() const override;
  void cancel() override;
  void set_journal(RunJournal* journal) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A worker's whole life: serves the session at the other end of `descriptor` until it ends. `log` (or -1)
/// becomes its standard error; its standard output leads nowhere, so that a kernel that prints spoils no
/// document.
int run_worker(int descriptor, int log);

}  // namespace ergotune
