// The target of tuning, opened from a problem and one string that names devices. The command, plans, the model and the
// Python package open it the same way.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem_file.hpp"
#include "evaluate/live/live_device.hpp"
#include "search/objective.hpp"

namespace ergotune {

struct Recording;

/// How a problem is opened and measured: the run settings, and additions of a command or an application.
struct SetupOptions {
  RunConfig run;
  /// Measure energy even if neither the objective nor a sensor requires it.
  bool energy = false;
  /// LiveOptions::worker_command and compile_share.
  std::vector<std::string> worker_command;
  std::shared_ptr<CompileShare> compile_share;
  /// False: begins a new session even if one with the same key is stored.
  bool resume = true;
  /// Added to the measurement settings in the session key, for values that are measured in another way.
  std::string key;
  /// Set clocks even if a lock of another process seems to be in force.
  bool take_over = false;
  /// Measure in this process instead of in workers, for callables that cannot be passed to another process.
  bool in_process = false;
  /// Observers and verifier of the application; in_process only.
  std::vector<std::shared_ptr<Observer>> observers;
  Verifier verifier;
  /// Metrics that the application computes; the objective may use their names.
  std::vector<std::string> further_metrics;
  /// Threads that build the space (0: one per core; 1 where restrictions call back into the application).
  int space_threads = 0;
  /// Values for execution parameters that request the model's suggestion (tune/plans/device_model.hpp).
  std::map<ParameterKind, std::vector<double>> suggested;
  /// A power-frequency model of the GPU is needed although no execution parameter requests it (a plan's `fixed =
  /// "model"`).
  bool needs_model = false;
  /// Receives messages for the user while the target is opened, line by line, for example while a model is fitted.
  std::function<void(const std::string&)> notify;
  const std::atomic<bool>* interrupted = nullptr;
  /// Changes the problem once the device's properties are known, for example to add a limit that Kernel Tuner implies.
  std::function<void(Problem&, const Constants& properties)> adapt;
  /// Called when this session waits for another session on the same device. If empty, that case is a UserError.
  std::function<void(const std::string&)> announce;
};

struct DeviceModel;

/// Returns the true quantities of a configuration without measuring it; nullopt: unknown.
using TrueMeasurement = std::function<std::optional<Measurement>(const Configuration&)>;

/// An opened problem. Members are destroyed in reverse order: the evaluator before the space that it refers to.
struct Target {
  Problem original;   ///< as requested
  Problem problem;    ///< with execution parameters resolved
  DeviceInfo device;  ///< replay and simulated: only id and name
  Constants constants;
  std::shared_ptr<const SearchSpace> space;
  /// Held while this session may measure (tune/session/session_setup.hpp). Released after the evaluator has restored
  /// all settings.
  std::shared_ptr<void> device_lock;
  std::unique_ptr<Evaluator> evaluator;
  LiveDevice* live = nullptr;  ///< the evaluator, if it runs kernels on a device; else null
  /// Replay and simulated: the recorded values, or the simulated values without noise.
  TrueMeasurement truth;
  std::string gpu_key;  ///< Control::device_key() of the GPU whose clocks are set; empty where none are
  /// The base clock according to vendor or driver, MHz; nullopt: unknown.
  std::optional<double> base_clock_mhz;
  /// The power-frequency model, if requested (tune/plans/device_model.hpp); else null.
  std::shared_ptr<const DeviceModel> device_model;
  std::string identity;            ///< device part of the session key: UUID or name, driver version, compiler
  std::string conditions;          ///< measurement settings part of the session key
  std::vector<std::string> notes;  ///< for the user
};

/// The problem's objective, which may name its metrics and the application's. Throws UserError with its place.
Objective objective_of(const Problem& problem, const std::vector<std::string>& further_metrics);

/// Splits the list of devices into one list for each kind of device: results of one kind do not apply to another.
std::vector<std::string> devices_by_kind(const RunConfig& run, const Problem& problem);

/// Whether a device string names a device that runs kernels, not a recording or simulation.
inline bool is_live(const std::string& device) { return !device.starts_with("replay:") && !device.starts_with("sim:"); }

/// Opens a problem's target. Throws UserError for every mistake that the user can correct, including an empty space.
Target open_target(Problem problem, const SetupOptions& options);

/// The recording of every configuration of a problem on a simulated device ("sim:a100"). Throws UserError for other
/// devices, and for what open_target() throws it for.
Recording record_simulated(const Problem& problem, const std::string& device);

}  // namespace ergotune
