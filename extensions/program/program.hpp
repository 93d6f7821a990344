// Tunes whole programs that run as processes: [program] of a problem file (docs/programs.md).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "evaluate/async_evaluator.hpp"
#include "evaluate/live/live_device.hpp"
#include "evaluate/live/serial_device.hpp"
#include "power/sensors/sensor.hpp"
#include "program/program_runner.hpp"

namespace ergotune {

/// Runs a program, one configuration after the other. No process that the program starts survives, however this process
/// ends: all are descendants of a supervising process (started by LiveOptions::worker_command with "supervise" as its
/// last word, else by this program's `supervise`).
class ProgramEvaluator : public AsyncEvaluator, public LiveDevice, public ControlledDevice {
 public:
  /// `problem`: with all values resolved, execution parameters included. `sensors`: their energies are added; empty: no
  /// energy is measured. Throws UserError.
  ProgramEvaluator(Problem problem, Constants constants, DeviceInfo device, LiveOptions options,
                   std::vector<std::unique_ptr<Sensor>> sensors);
  /// Ends the running program, then restores clocks.
  ~ProgramEvaluator() override { end_thread(); }

  const DeviceInfo& device() const override { return device_; }
  const std::string& compiler_identity() const override { return compiler_; }
  /// No reference is needed: outputs are not compared with those of other configurations.
  bool establish_reference(const std::vector<Configuration>&) override { return true; }
  std::vector<std::string> notes() const override;
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device = 0) override;

  std::string description() const override { return serial_.described(device_.name + " (program)"); }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return serial_.capacity(); }

 private:
  void accept(EvaluationRequest request) override { serial_.add(std::move(request)); }
  void advance() override;
  double watch(std::vector<pollfd>& polled) override;
  void drop() override { serial_.clear(); }
  void interrupt() override;

  const Problem problem_;
  const Constants constants_;
  const DeviceInfo device_;
  const std::string compiler_, sensors_;
  // Members are destroyed in reverse order: measuring ends before the clocks are restored.
  SerialDevice serial_;
  ProgramRunner runner_;
  std::atomic<bool> running_ = false;  ///< a configuration runs
  std::atomic<bool> dropped_ = false;  ///< the result of the running configuration is no longer needed
};

}  // namespace ergotune
