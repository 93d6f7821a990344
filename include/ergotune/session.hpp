// Tuning from C++: the same path as `ergotune tune`, from a problem to a result with confidence intervals.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/observer.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// The state of a running search, once for each result.
struct TuneProgress {
  std::uint64_t evaluated = 0;         ///< configurations measured in this run
  std::uint64_t total = 0;             ///< configurations of the search space
  double seconds = 0;                  ///< s since the run began
  std::optional<double> best;          ///< objective of the best configuration so far
  std::optional<double> seconds_left;  ///< s, estimated
};

struct TuneOptions {
  /// Run settings by the names of [tune] in a problem file, as text: {"device", "opencl:0"}, {"budget", "60s"},
  /// {"objective", "energy"}, {"store", "results.db"}. They take precedence over the problem's own.
  std::map<std::string, std::string> settings;
  /// Hooks on each measurement. They run in this process, and so do the kernels.
  std::vector<std::shared_ptr<Observer>> observers;
  /// Called on the calling thread after each result.
  std::function<void(const TuneProgress&)> progress;
  /// Ends the search with the best configuration so far once it is true.
  const std::atomic<bool>* interrupted = nullptr;
  /// The `ergotune` command whose worker processes compile and run kernels. Empty: $ERGOTUNE_COMMAND, else `ergotune`
  /// on the search path. Unused where observers are given.
  std::string command;
};

/// A configuration with its result.
struct TunedConfiguration {
  std::map<std::string, Value> configuration;
  Measurement measurement;
  /// Value of the objective in its own unit and direction; nullopt for a failure and for Pareto objectives.
  std::optional<double> objective;
  int confirmation_repeats = 0;  ///< how often it was measured again beside its rivals
};

struct TuneResult {
  /// The best first; for a Pareto objective the whole front. Empty where no configuration worked.
  std::vector<TunedConfiguration> best;
  std::optional<TunedConfiguration> default_result;
  Provenance provenance = Provenance::measured;
  /// Probability that best[0] is the best of the confirmed candidates; nullopt where nothing was confirmed.
  std::optional<double> probability_best;
  std::uint64_t evaluated = 0;  ///< measured in this run
  std::uint64_t resumed = 0;    ///< taken from the store
  double seconds = 0;           ///< s that the run took
  /// The document of `ergotune tune --json`.
  std::string json;
};

/// Tunes a problem. Throws UserError for every mistake that the caller can correct (an unknown setting, a device that
/// is absent, an empty search space) and Error for a failure of the machine.
TuneResult tune(ProblemFile problem, const TuneOptions& options = {});

}  // namespace ergotune
