// One loaded device and one problem: runs one configuration after the other and says what was found out.
// Works in a worker process and in the user's own.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

struct MeasureOptions : MeasureSettings {
  /// A sample lasts at least this long (s): shorter kernels are launched several times per sample.
  double min_sample_seconds = 1e-4;
  /// A stream for observers ends after this many seconds at the latest.
  double stream_seconds_limit = 3.0;
  /// Where the outputs of the first correct configuration are kept for runners that come later; empty:
  /// nowhere.
  std::filesystem::path reference_file;
  /// From what is set, the rest as above.
  static MeasureOptions from(const RunConfig& settings);
};

/// One measurement that is requested.
struct RunOptions {
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// s: where the time is above, observers do not watch, so that no energy is measured.
  double energy_up_to = 1e300;
  /// Only take this configuration's outputs as the reference, measure nothing.
  bool reference_only = false;
  /// Only say what the compiled code needs, run nothing.
  bool resources_only = false;
  /// The control (its reopen_id()) whose device is watched meanwhile; empty: none.
  std::string watched;
  /// MHz that the core clock was set to; 0: it was not. Measuring begins when the GPU runs at it, or has been under
  /// load for long enough to.
  double requested_clock_mhz = 0;
  /// How far a clock that runs as asked may be read from it, relative.
  double clock_tolerance = 0.01;
  /// Host time of a change of clocks that was not seen in force yet; 0: none.
  double set_at = 0;
  /// Only run it for a moment and say what the watched GPU does: nothing is verified, timed or observed.
  bool look_only = false;
};

/// An output as a verification callback sees it.
struct OutputView {
  const Argument* argument = nullptr;
  std::span<const std::byte> actual;
  /// Empty where there is no reference.
  std::span<const std::byte> expected;
};

/// The user's own verification: true when the outputs are right; `message` and `error` (relative) may be
/// filled.
using Verifier = std::function<bool(const std::vector<OutputView>& outputs, std::string& message, double& error)>;

class Runner {
 public:
  /// Allocates and fills the problem's buffers, works out the reference and makes the observers that the
  /// problem asks for. Throws UserError (a bad expression, too little memory for the problem's buffers, a
  /// reference that does not run, an unknown observer).
  Runner(Device& device, const Problem& problem, MeasureOptions options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Called in the given order, after those that the problem asks for.
  void add_observer(std::shared_ptr<Observer> observer);
  /// True when an observer of this name takes part.
  bool observes(const std::string& name) const;
  void set_verifier(Verifier verifier);
  /// What the observers that the problem asks for have to say before anything runs: what is counted, and in how many
  /// launches.
  const std::vector<std::string>& notes() const;

  /// What is to be compiled for a configuration, for each of the problem's kernels.
  CompileJob compile_job(const Configuration& configuration, std::size_t kernel = 0) const;
  /// Runs it: one round (every kernel of the problem once, in their order), verify, warm up, time, observe.
  /// Takes one binary per kernel. Never throws for what the configuration does wrong.
  Measurement run(const Configuration& configuration, std::span<const Binary> binaries, const RunOptions& options = {});
  Measurement run(const Configuration& configuration, const Binary& binary, const RunOptions& options = {}) {
    return run(configuration, std::span(&binary, 1), options);
  }
  /// True once there are expected outputs to compare with (or none are wanted).
  bool has_reference() const;
  /// False after a fault that leaves the device context unusable: start a new process.
  bool healthy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
