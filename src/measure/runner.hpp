// Measures configurations of one problem on one device, one after the other. Works in a worker process and in the
// user's process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "ergotune/result.hpp"
#include "ergotune/run_config.hpp"

namespace ergotune {

struct Problem;

struct MeasureOptions : MeasureSettings {
  /// Minimum duration of a sample in s: shorter kernels are launched several times per sample.
  double min_sample_seconds = 1e-4;
  /// Maximum duration in s of a stream for observers.
  double stream_seconds_limit = 3.0;
  /// File that keeps the outputs of the first correct configuration for later runners; empty: they are not kept.
  std::filesystem::path reference_file;
  /// This process only measures functions on the CPU: the limits of its allocator may be changed (AllocationLimits).
  bool sets_allocation_limits = false;
  /// Takes the values from the run settings, and the defaults for the rest.
  static MeasureOptions from(const RunConfig& settings);
};

/// Options of one measurement.
struct RunOptions {
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// s: where the time is above, observers do not watch, so that no energy is measured.
  double energy_up_to = 1e300;
  /// s: a GPU runs the configuration for so long before it is timed, so that its clock is that of a lasting load: above
  /// its power limit a GPU runs faster for some milliseconds than it can for long.
  double settle_seconds = 0;
  /// Only take this configuration's outputs as the reference, measure nothing.
  bool reference_only = false;
  /// Only reports the resources that the compiled code needs, without running it.
  bool resources_only = false;
  /// Control (its reopen_id()) whose device is watched during the measurement; empty: none.
  std::string watched;
  /// Core clock in MHz that was set; 0: none. The measurement begins when the GPU runs at it, or has been under load
  /// for long enough.
  double requested_clock_mhz = 0;
  /// Relative deviation up to which a clock counts as the requested one.
  double clock_tolerance = 0.01;
  /// Host time of a clock change whose effect has not been observed yet; 0: none.
  double set_at = 0;
  /// Only runs the configuration briefly and reports the state of the watched GPU; does not verify, time or observe.
  bool state_only = false;
};

/// An output, as passed to a verification callback.
struct OutputView {
  const Argument* argument = nullptr;
  std::span<const std::byte> actual;
  /// Empty if there is no reference.
  std::span<const std::byte> expected;
};

/// The user's verification. Returns true if the outputs are correct; may set `message` and `error` (relative).
using Verifier = std::function<bool(const std::vector<OutputView>& outputs, std::string& message, double& error)>;

class Runner {
 public:
  /// Allocates and fills the problem's buffers, computes the reference outputs, and creates the observers that the
  /// problem requests. Throws UserError for an invalid expression, buffers that do not fit into memory, a reference
  /// that fails, and an unknown observer.
  Runner(Device& device, const Problem& problem, MeasureOptions options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Adds an observer after those that the problem requests. Observers are called in this order.
  void add_observer(std::shared_ptr<Observer> observer);
  /// True if there is an observer of this name.
  bool observes(const std::string& name) const;
  void set_verifier(Verifier verifier);
  /// Notes of the requested observers: which quantities they measure, and in how many launches.
  const std::vector<std::string>& notes() const;

  /// Returns the compile job of a configuration for one of the problem's kernels.
  CompileJob compile_job(const Configuration& configuration, std::size_t kernel = 0) const;
  /// Measures a configuration: runs and verifies one iteration (each kernel once by default), warms up, times,
  /// observes. Takes one binary per kernel. Failures of the configuration are returned as a status, never thrown.
  Measurement run(const Configuration& configuration, std::span<const Binary> binaries, const RunOptions& options = {});
  Measurement run(const Configuration& configuration, const Binary& binary, const RunOptions& options = {}) {
    return run(configuration, std::span(&binary, 1), options);
  }
  /// True if expected outputs are available, or none are needed.
  bool has_reference() const;
  /// False after a fault that made the device context unusable; a new process is needed.
  bool healthy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
