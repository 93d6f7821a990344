// One tuning run: strategy, evaluator, store and objective brought together. The command and the Python
// package are thin layers over this.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ergotune/run_config.hpp"
#include "ergotune/strategy.hpp"
#include "evaluate/evaluator.hpp"
#include "search/objective.hpp"
#include "search/ranking.hpp"
#include "store/sqlite/store.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

struct Problem;

/// When to stop. 0 or unset means no bound.
struct Budget {
  std::uint64_t evaluations = 0;
  double seconds = 0;
  double joules = 0;
  /// "25", "10min", "90s", "2h", "500J", or several with commas. Throws UserError.
  static Budget parse(const std::string& text);
};

/// Repeats, as of a confirmation, and what one of them takes in s and J.
struct RepeatCost {
  std::size_t repeats = 0;
  double seconds = 0, joules = 0;
};

struct SessionProgress {
  std::uint64_t evaluated = 0, resumed = 0, failed = 0, total = 0;
  double seconds = 0;
  std::optional<double> best;
  /// Objective and unit of `best`, if it is not the problem's objective: a stage of a plan has its own.
  std::string objective, unit;
  std::optional<double> seconds_left;
  /// What happens besides searching: "confirming the best"; empty while searching.
  std::string phase;
  /// The latest result; null if there is none.
  const ConfigurationResult* last = nullptr;
  /// If several devices measure; updated once a second.
  std::vector<DeviceShare> gpus;
};

/// One of several devices of a session.
struct DeviceResult : DeviceShare {
  /// Comparison with the mean device, by quantity (DeviceFactors).
  std::map<std::string, DeviceFactors::Factor> factors;
};

struct SessionOptions {
  /// Takes the settings from `settings`, the rest as initialised below. Throws UserError for an invalid budget and an
  /// unknown strategy.
  static SessionOptions from(const RunConfig& settings);
  std::string strategy = "auto";
  std::map<std::string, Value> strategy_options;
  Budget budget;
  double spent_seconds = 0;  ///< of the budget, before the search began
  std::uint64_t seed = 1;
  /// Re-measure the top candidates and the default side by side before the winner is reported.
  bool confirm = true;
  /// s between baseline runs of the default at most (BaselineRunSource).
  double reference_every = 600;
  /// Let strategies that support it (Strategy::ends_early) end when an improvement is unlikely.
  bool early_stop = true;
  /// Earlier results to start from: files, or "auto" (docs/strategies.md); looked up in a prepared session.
  std::vector<std::string> prior;
  /// Their outcomes for the space that is searched.
  std::vector<PriorResults> priors;
  /// Stored results with these statuses do not count as known: they are measured again, before the search.
  std::set<Status> retry;
  const std::atomic<bool>* interrupted = nullptr;
  /// Its metrics are computed for every measurement.
  const Problem* problem = nullptr;
  Constants constants;
  /// LedgerOptions::further_metrics.
  std::function<void(Measurement&, const Configuration&)> further_metrics;
  /// How many of the best to return.
  std::size_t top = 10;
  std::function<void(const SessionProgress&)> progress;
};

/// How sure a choice is once it was confirmed: measured again beside its rivals.
struct Confidence {
  /// Rounds in which it was measured again, for this objective; 0: it was not.
  int confirmation_repeats = 0;
  /// Probability that it is the best of the confirmed candidates; nullopt: not confirmed.
  std::optional<double> probability_best;
  /// How far it is expected to be from the best of them, relative to its value; nullopt: not confirmed.
  std::optional<double> expected_loss;
  /// How the search's values changed when they were measured again.
  Repeats search_repeats;
};

struct SessionResult : Confidence {  // of best[0]
  /// Best first, by the one order of results (search/ranking.hpp): the best of those confirmed leads; for Pareto
  /// objectives the whole front. Indices are the ledger's.
  std::vector<ConfigurationResult> best;
  /// Empty for a single device.
  std::vector<DeviceResult> gpus;
  /// Range of the drift during the search, by quantity of the objective; empty if nothing drifted.
  std::map<std::string, Drift::Range> drift;
  std::uint64_t evaluated = 0;  ///< measured in this run
  std::uint64_t resumed = 0;    ///< taken from the store
  std::uint64_t disturbed =
      0;  ///< no result, since the device was disturbed at every attempt (ConfigurationResult::disturbed)
  std::uint64_t retried = 0;  ///< of `evaluated`: configurations that were retried (SessionOptions::retry)
  double seconds = 0;
  double waited = 0;         ///< s before it, while another session measured on the device
  double tuner_seconds = 0;  ///< own time of ergotune, without compilers and kernels
  std::string strategy, explanation, stopped_because;
};

/// Note that results were corrected for drift, and its size; empty if nothing drifted.
std::string note_of_drift(const SessionResult& result);

/// Searches `space`, which is the ledger's or a part of it (a stage of a plan), to its end.
SessionResult run_session(Ledger& ledger, const SearchSpace& space, Objective& objective,
                          const SessionOptions& options);

/// The same with a ledger of its own: what the store knows is passed to the strategy and not measured again; every
/// result is durable before it is reported. `store` and `store_session` may be null/0 for runs that keep nothing.
SessionResult run_session(const SearchSpace& space, Objective& objective, Evaluator& evaluator, Store* store,
                          std::int64_t store_session, const SessionOptions& options);

}  // namespace ergotune
