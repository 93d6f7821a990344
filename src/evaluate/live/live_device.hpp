// Options of live measurements, and the interfaces that live evaluators offer in addition to Evaluator.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/run_config.hpp"
#include "evaluate/evaluator.hpp"
#include "measure/runner.hpp"

namespace ergotune {

class ControlSession;

/// Limits the number of compile workers at work over all sessions of one process.
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
  /// Measure energy in addition.
  bool energy = false;
  /// The command that starts a worker; "--descriptor N --log N" is appended. Empty: this program's `worker` verb.
  std::vector<std::string> worker_command;
  /// Ids of several devices of one kind; empty: the devices named by `device`.
  std::vector<std::string> devices;
  /// Shared with the other sessions of this process; null: no other sessions.
  std::shared_ptr<CompileShare> compile_share;
  /// Set to end the wait for workers; null: nothing ends it.
  const std::atomic<bool>* interrupted = nullptr;
  /// Takes the settings from `settings`, the rest as initialised above.
  static LiveOptions from(const RunConfig& settings);
};

/// Returns a measurement with this failure and the current time.
Measurement failed_measurement(Status status, const std::string& message);

/// EvaluationResult::gpu of a device: its UUID, else its id.
inline const std::string& gpu_of(const DeviceInfo& device) { return device.uuid.empty() ? device.id : device.uuid; }

/// The devices of a live evaluator.
class LiveDevice {
 public:
  virtual ~LiveDevice() = default;
  virtual const DeviceInfo& device() const = 0;
  /// All devices; device() is the first.
  virtual std::vector<DeviceInfo> devices() const { return {device()}; }
  /// Compiler::identity(), which is part of the session key.
  virtual const std::string& compiler_identity() const = 0;
  /// Establishes the expected outputs if they come from the first correct configuration: takes them from the first of
  /// `candidates` that runs, unless they exist already. A resumed session passes a configuration known to be correct.
  virtual bool establish_reference(const std::vector<Configuration>& candidates) = 0;
  /// Notes of the workers, such as a missing sensor or a driver's warning.
  virtual std::vector<std::string> notes() const = 0;
};

/// A live evaluator that changes the settings of its devices.
class ControlledDevice {
 public:
  virtual ~ControlledDevice() = default;
  /// Sets the execution parameters among `parameters` (those of the space, in its order) through `session` right before
  /// a configuration runs, in an order that changes them as seldom as possible. A setting that the hardware refuses
  /// becomes the status of the configuration (unsupported for an invalid value or pair, launch_error otherwise). If the
  /// actual clock (quantity core_clock) differs from the requested one, the measurement gets a warning "asked 1410 MHz,
  /// ran 1275 MHz, power cap". All settings are restored when the evaluator is destroyed. Call it before the first
  /// submit(), once for each of LiveDevice::devices(); `device` is the position there.
  virtual void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                            std::size_t device = 0) = 0;
};

}  // namespace ergotune
