// Live measurements: what they are requested, and what their evaluators offer beside results.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem_file.hpp"
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
  static LiveOptions from(const RunConfig& settings);
};

/// A measurement that failed now.
Measurement failed_measurement(Status status, const std::string& message);

/// What results name a device by (EvaluationResult::GPU): its UUID, else its id.
inline const std::string& gpu_of(const DeviceInfo& device) { return device.uuid.empty() ? device.id : device.uuid; }

/// The devices that a live evaluator found.
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
  /// The workers' remarks: a sensor that is not there, a driver's warning.
  virtual std::vector<std::string> notes() const = 0;
};

/// A live evaluator whose devices' settings are changed by this session.
class ControlledDevice {
 public:
  virtual ~ControlledDevice() = default;
  /// From now on the execution parameters (those of `parameters`, the space's in their order, that are not code) are
  /// set through `session` right before a configuration runs, in an order that changes them as seldom as possible. A
  /// setting that the hardware refuses is that configuration's status (unsupported for an invalid value or pair,
  /// launch_error for the rest). Where the clock that ran (quantity core_clock) is not the one requested, the
  /// measurement gets a warning "asked 1410 MHz, ran 1275 MHz, power cap". Everything goes back when the evaluator
  /// ends. Called before the first submit(), for each of LiveDevice::devices() by its position.
  virtual void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                            std::size_t device = 0) = 0;
};

}  // namespace ergotune
