// Whole programs, run as processes: [program] of a problem file (docs/programs.md).
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

/// Runs a program, one configuration after the other. Nothing that the program starts is left behind, however this
/// process ends: its processes are children of a supervising one (LiveOptions::worker_command with "supervise" for its
/// last word, else this program's `supervise`).
class ProgramEvaluator : public AsyncEvaluator, public LiveDevice, public ControlledDevice {
 public:
  /// `problem` with everything resolved, execution parameters too. `sensors`: their energies are added; none: no
  /// energy. Throws UserError.
  ProgramEvaluator(Problem problem, Constants constants, DeviceInfo device, LiveOptions options,
                   std::vector<std::unique_ptr<Sensor>> sensors);
  /// Ends what runs, then puts clocks back.
  ~ProgramEvaluator() override { end_thread(); }

  const DeviceInfo& device() const override { return device_; }
  const std::string& compiler_identity() const override { return compiler_; }
  /// A program is not compared with other configurations.
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
  // Destroyed in reverse order: what measures ends before the clocks go back.
  SerialDevice serial_;
  ProgramRunner runner_;
  std::atomic<bool> running_ = false;  ///< a configuration
  std::atomic<bool> dropped_ = false;  ///< its result is not wanted any more
};

}  // namespace ergotune
