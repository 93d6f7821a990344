// Whole programs, run as processes: [program] of a problem file (docs/programs.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evaluate/live/live.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// Runs a program, one configuration after the other, from a thread of its own. Nothing that the program starts is left
/// behind, however this process ends: its processes are children of a supervising one (LiveOptions::worker_command with
/// "supervise" for its last word, else this program's `supervise`).
class ProgramEvaluator : public Evaluator, public LiveDevice {
 public:
  /// `problem` with everything resolved, execution parameters too. `sensors`: their energies are added; none: no
  /// energy. Throws UserError.
  ProgramEvaluator(Problem problem, Constants constants, DeviceInfo device, LiveOptions options,
                   std::vector<std::unique_ptr<Sensor>> sensors);
  /// Ends what runs, then puts clocks back.
  ~ProgramEvaluator() override;

  const DeviceInfo& device() const override;
  const std::string& compiler_identity() const override;
  /// A program is not compared with other configurations.
  bool establish_reference(const std::vector<Configuration>&) override { return true; }
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

}  // namespace ergotune
