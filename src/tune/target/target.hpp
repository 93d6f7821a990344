// What a problem is tuned on, opened from one string. The command, plans, the model and the Python package open it the
// same way and differ in nothing.
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

/// How a problem is opened and measured: the run settings, and what a command or an application adds to them.
struct SetupOptions {
  RunConfig run;
  /// Measure energy although neither the objective nor a sensor asks for it.
  bool energy = false;
  /// LiveOptions::worker_command and compile_share.
  std::vector<std::string> worker_command;
  std::shared_ptr<CompileShare> compile_share;
  /// False: begins a session of its own even where one with the same identity is stored.
  bool resume = true;
  /// Set clocks although another process's lock seems to be in force.
  bool take_over = false;
  /// Measures in this process instead of in workers (callables that cannot leave it).
  bool in_process = false;
  /// In process: the application's own.
  std::vector<std::shared_ptr<Observer>> observers;
  Verifier verifier;
  /// Metrics that the application works out itself: their names may stand in the objective.
  std::vector<std::string> further_metrics;
  /// Threads that build the space (0: one per core; 1 where restrictions call back into the application).
  int space_threads = 0;
  /// Values for execution parameters that ask for the model's suggestion (tune/model).
  std::map<ParameterKind, std::vector<double>> suggested;
  /// A power-frequency model of the GPU is wanted although no execution parameter asks for it (a plan's
  /// `fixed = "model"`).
  bool needs_model = false;
  /// What takes its time while the target is opened (a model that is fitted first) is reported here line by line, and
  /// ends when this is set.
  std::function<void(const std::string&)> tell;
  const std::atomic<bool>* interrupted = nullptr;
  /// Changes the problem once the device's properties are known (a limit that Kernel Tuner implies).
  std::function<void(Problem&, const Constants& properties)> adapt;
  /// Reports to the user that this session waits for another on the same device. Without it that is a UserError.
  std::function<void(const std::string&)> announce;
};

struct DeviceModel;

/// A quantity of a configuration without measuring it; nullopt where unknown.
using Truth = std::function<std::optional<Measurement>(const Configuration&)>;

/// Members are destroyed in reverse order: the evaluator goes before the space it refers to.
struct Target {
  Problem original;   ///< as it was requested
  Problem problem;    ///< with execution parameters resolved
  DeviceInfo device;  ///< replay and simulated: id and name only
  Constants constants;
  std::shared_ptr<const SearchSpace> space;
  /// Held while this session may measure (tune/session/session_setup.hpp); given back when the evaluator has put all
  /// things right.
  std::shared_ptr<void> device_lock;
  std::unique_ptr<Evaluator> evaluator;
  LiveDevice* live = nullptr;  ///< the evaluator, where it really runs kernels
  /// Replay and simulated: what is recorded, or what the model says without noise.
  Truth truth;
  std::string gpu_key;  ///< Control::device_key() of the GPU whose clocks are set; empty where none are
  /// MHz, where the maker or the driver says it.
  std::optional<double> base_clock_mhz;
  /// Where it was requested (tune/plans/device_model.hpp).
  std::shared_ptr<const DeviceModel> device_model;
  std::string identity;            ///< uuid or name, driver version, compiler identity
  std::string conditions;          ///< what is measured and how
  std::vector<std::string> notes;  ///< for the user
};

/// The problem's objective, which may name its metrics and the application's. Throws UserError with its place.
Objective objective_of(const Problem& problem, const std::vector<std::string>& further_metrics);

/// Whether a device's text stands for what really runs kernels.
/// The devices that a text names, as a text for each kind of them: results of one kind say nothing of another.
std::vector<std::string> devices_by_kind(const RunConfig& run, const Problem& problem);

inline bool is_live(const std::string& device) { return !device.starts_with("replay:") && !device.starts_with("sim:"); }

/// Throws UserError for everything that the user can mend, an empty space among it.
Target open_target(Problem problem, const SetupOptions& options);

}  // namespace ergotune
