// Turns configurations into measurements: live (worker processes), replay (recorded), simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// One configuration to be measured.
struct EvaluationRequest {
  std::uint64_t id = 0;
  ConfigurationIndex index = 0;
  Configuration configuration;
  /// Measure again even where a result is known: its own, independent measurement.
  bool repeat = false;
  /// Racing: once the interval of the objective lies wholly above this value (in objective_quantity's unit)
  /// the measurement may stop; infinity for none.
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// Only what its compiled code needs is wanted (registers, shared memory, occupancy): nothing runs. Such a request is
  /// of no ledger, and its index means nothing.
  bool resources_only = false;
  /// The one device (EvaluationResult::GPU) that may run it; empty: any.
  std::string gpu = {};
  /// Devices are compared by it, and the conditions of other measurements with its conditions.
  bool reference = false;
  /// Screening: above this time, s, the energy is not measured.
  double energy_up_to = 1e300;
};

struct EvaluationResult {
  std::uint64_t id = 0;
  ConfigurationIndex index = 0;
  Measurement measurement;
  /// UUID, else id, of the device that ran it: filled by live evaluators; empty where nothing ran (a configuration that
  /// does not compile).
  std::string gpu = {};
  /// The device ran under another setting than was requested, however often it was set: a failure of the device's
  /// conditions, which is not kept as a property of the configuration.
  bool disturbed = false;
};

/// One of several devices that an evaluator shares its requests among.
struct DeviceShare {
  std::string gpu;   ///< as in EvaluationResult
  std::string id;    ///< for people: "cuda:1", with its node before it where that is another ("n1/cuda:1")
  std::string name;  ///< "NVIDIA H200"
  std::uint64_t results = 0;
  double busy_seconds = 0, idle_seconds = 0;  ///< since it came: measuring, and waiting for something to measure
  bool lost = false;
};

/// Where an evaluator that really runs kernels writes down what it is about to run, so that a resume does not meet a
/// culprit twice. Called from the evaluator's own thread.
class RunJournal {
 public:
  virtual ~RunJournal() = default;
  /// The request runs next on a device (a number from 0); durable when this returns. Called once for each request that
  /// runs, right before it does: what ran on that device before has ended, though wait() may return its result later
  /// (the device is not kept waiting for that). Must not throw: an error of writing is reported by the session's next
  /// write.
  virtual void about_to_run(const EvaluationRequest& request, std::size_t device) = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// For people and for stored sessions: "opencl:0:0 (pthread-...)", "replay of ...", "simulated A100".
  virtual std::string description() const = 0;
  virtual Provenance provenance() const = 0;
  /// How many requests it can usefully hold at once (compiling runs ahead of measuring).
  virtual std::size_t capacity() const { return 1; }
  /// Where requests are shared among devices: all of them, those that were lost too. Empty for the rest.
  virtual std::vector<DeviceShare> gpus() const { return {}; }
  /// Takes a request; never blocks for long.
  virtual void submit(EvaluationRequest request) = 0;
  /// The next finished result, in any order; nullopt after `seconds` without one.
  virtual std::optional<EvaluationResult> wait(double seconds) = 0;
  /// Requests taken and not yet returned.
  virtual std::size_t pending() const = 0;
  /// Drops what has not started; what runs is ended.
  virtual void cancel() {}
  /// Called before the first submit(). Evaluators that run nothing ignore it; those around others pass it on.
  virtual void set_journal(RunJournal*) {}
};

}  // namespace ergotune
