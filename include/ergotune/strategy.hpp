// Interface of the strategies, which decide by ask and tell which configuration is measured next. A strategy sees the
// search space, values to minimise and its own random numbers; it never sees the device, the store or the wall clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/random.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// The outcome of a configuration, as passed to a strategy.
struct Outcome {
  /// False: the configuration failed and has no values.
  bool ok = false;
  /// The objective values, all to be minimised; one for single-objective search.
  std::vector<double> values;
  /// Their standard errors; empty means exact.
  std::vector<double> standard_errors;
  /// Degrees of freedom of the standard errors (Quantity::degrees); empty: 0 for each.
  std::vector<double> degrees = {};
  /// In a workload of several kernels: the part of the time that each kernel takes, s, by kernel name.
  std::map<std::string, double> kernel_times = {};
  /// Largest share that a block takes of the threads, registers and shared memory that it may have, where compiled code
  /// reports it, of failures too: launches with more than 1 are refused. 0: unknown.
  double block_need = 0;
  /// Seconds by which evaluating the configuration prolonged the search, considering concurrent evaluations; 0 if
  /// unknown. A strategy derives from it how much computation it may afford.
  double seconds = 0;
};

/// The results of an earlier search on another device, at another size, with another driver or an older source.
struct PriorResults {
  std::string name;  ///< shown to users
  std::vector<std::pair<ConfigurationIndex, Outcome>> outcomes;
};

/// What a strategy is given when it starts.
struct StrategyContext {
  const SearchSpace* space = nullptr;
  std::uint64_t seed = 1;
  /// Expected number of evaluations; 0 when unknown.
  std::uint64_t budget = 0;
  /// Number of objectives.
  std::size_t objectives = 1;
  /// Hyperparameters by name; those that are absent take their documented defaults.
  std::map<std::string, Value> options;
  /// Outcomes known before the search (from a resumed session), passed to tell() as if they had been requested.
  std::vector<std::pair<ConfigurationIndex, Outcome>> known;
  /// Results of other sessions. Strategies check them against the outcomes of this search.
  std::vector<PriorResults> priors;
  /// A clock in s, from which a strategy learns what its own computation costs. Without it the strategy counts
  /// operations instead, and equal outcomes lead to equal searches.
  std::function<double()> clock;
};

/// Contract of every strategy: it never leaves the search space, never asks for a configuration twice, ends (by an
/// empty ask() while nothing is outstanding) when it has no configuration left, and returns the same sequence for the
/// same seed and outcomes.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  /// Returns up to `count` configurations to evaluate next. Returns fewer while it waits for outcomes; returning none
  /// while nothing is outstanding means that it has finished.
  virtual std::vector<ConfigurationIndex> ask(std::size_t count) = 0;
  /// Reports an outcome. It may belong to a configuration that this strategy did not ask for, and may replace an
  /// earlier outcome (Objective::revision).
  virtual void tell(ConfigurationIndex index, const Outcome& outcome) = 0;
  /// Explains the strategy's decisions ("auto" names the strategy that it chose); may be empty.
  virtual std::string explanation() const { return {}; }
  /// Probability, according to its model, that the latest request improves on the best value by more than 1 %; nullopt
  /// if the strategy has no model.
  virtual std::optional<double> prospect() const { return std::nullopt; }
  /// True if the search may end when an improvement is unlikely. False for strategies that sample or enumerate, and for
  /// those that the user chose by name.
  virtual bool ends_early() const { return false; }
};

/// A hyperparameter of a strategy, with its help text and the values to try when it is tuned.
struct StrategyOption {
  std::string name;
  std::string meaning;
  Value default_value;
  std::vector<Value> candidates;
};

struct StrategyDescription {
  std::string name;
  std::string summary;
  std::vector<StrategyOption> options;
  bool multi_objective = false;
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make;
};

/// All strategies by name, including those added by register_strategy().
const std::vector<StrategyDescription>& strategies();
void register_strategy(StrategyDescription description);
/// Creates a strategy. Throws UserError for an unknown name or option; the message suggests the nearest valid one.
std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context);

}  // namespace ergotune
