// Tuning from C++. tune() does what `ergotune tune` does: from a problem to a result with confidence intervals.
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

/// Progress of a running search, reported after each result.
struct TuneProgress {
  std::uint64_t evaluated = 0;         ///< configurations measured in this run
  std::uint64_t total = 0;             ///< configurations of the search space
  double seconds = 0;                  ///< s since the run began
  std::optional<double> best;          ///< objective of the best configuration so far
  std::optional<double> seconds_left;  ///< s, estimated; nullopt: unknown
};

struct TuneOptions {
  /// Run settings as strings, by their names in the table [tune] of a problem file: {"device", "opencl:0"}, {"budget",
  /// "60s"}, {"objective", "energy"}, {"store", "results.db"}. They take precedence over the problem's settings.
  std::map<std::string, std::string> settings;
  /// Observers of each measurement. If any are given, kernels run in this process, because observers do.
  std::vector<std::shared_ptr<Observer>> observers;
  /// Called on the calling thread after each result.
  std::function<void(const TuneProgress&)> progress;
  /// The search ends with the best configuration so far once this becomes true. May be null.
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
  int confirmation_repeats = 0;  ///< number of times that it was measured again during confirmation
};

struct TuneResult {
  /// The best configuration first; for a Pareto objective the whole front. Empty if no configuration worked.
  std::vector<TunedConfiguration> best;
  std::optional<TunedConfiguration> default_result;
  Provenance provenance = Provenance::measured;
  /// Probability that best[0] is the best of the confirmed candidates; nullopt if none were confirmed.
  std::optional<double> probability_best;
  std::uint64_t evaluated = 0;  ///< measured in this run
  std::uint64_t resumed = 0;    ///< taken from the store
  double seconds = 0;           ///< duration of the run, s
  /// The JSON document that `ergotune tune --json` prints.
  std::string json;
};

/// Tunes a problem. Throws UserError for every mistake that the caller can correct (such as an unknown setting, a
/// missing device or an empty search space), and Error for any other failure.
TuneResult tune(ProblemFile problem, const TuneOptions& options = {});

}  // namespace ergotune
