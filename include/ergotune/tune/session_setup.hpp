// From a problem and what its user asked for to everything a session needs: device, space, evaluator, store.
// The command's `tune`, plans and the Python package all start here.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/evaluate/live.hpp"
#include "ergotune/tune/session.hpp"

namespace ergotune {

struct SetupOptions {
  /// "cuda:0", "opencl:0:0", "host", "replay:FILE", "sim:PROFILE"; empty: the best that fits the problem.
  std::string device;
  /// Where results are kept; empty: nowhere.
  std::filesystem::path store;
  /// False: begins a session of its own even where one with the same identity is stored.
  bool resume = true;
  LiveOptions live;
  /// Controls for execution parameters; none: the device's own.
  std::vector<std::string> controls;
  /// Set clocks although somebody else's lock seems to be in force.
  bool take_over = false;
  /// Measures in this process instead of in workers (callables that cannot leave it).
  bool in_process = false;
  /// Values for execution parameters that ask for the model's suggestion (tune/model).
  std::map<ParameterKind, std::vector<double>> suggested;
  /// Seed of a simulated device's noise.
  std::uint64_t simulation_seed = 1;
  /// What the problem file says, the rest as above.
  static SetupOptions from(const Problem& problem);
};

/// Members are destroyed in reverse order: the evaluator goes before the space it refers to.
struct PreparedSession {
  Problem problem;    ///< with execution parameters resolved
  DeviceInfo device;  ///< replay and simulated: id and name only
  Constants constants;
  std::shared_ptr<const SearchSpace> space;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<Store> store;  ///< null where nothing is kept
  std::int64_t store_session = 0;
  std::vector<std::string> notes;  ///< for the user
  /// The runner of an in-process evaluator; null elsewhere.
  Runner* runner = nullptr;
};

/// Throws UserError for everything that the user can mend, an empty space among it.
PreparedSession prepare_session(Problem problem, const SetupOptions& options);

/// Runs what was prepared; fills in problem and constants of the options.
SessionResult run_session(PreparedSession& prepared, SessionOptions options);

}  // namespace ergotune
