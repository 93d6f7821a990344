// A strategy decides which configuration comes next: ask and tell. It sees the space, values to minimise, and its own
// random numbers; never the device, the store or the clock on the wall.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
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
  /// False: it failed and has no values.
  bool ok = false;
  /// The objective values, all to be minimised; one for single-objective search.
  std::vector<double> values;
  /// Their standard errors; empty means exact.
  std::vector<double> standard_errors;
  /// Degrees of freedom of these (Quantity::degrees); empty: 0 for each.
  std::vector<double> degrees = {};
  /// Of several kernels, the share of each in the time, s, by name.
  std::map<std::string, double> kernel_times = {};
  /// s of the search that evaluating it took, with what runs side by side taken into account; 0 where unknown. A
  /// strategy computes accordingly.
  double seconds = 0;
};

/// What an earlier search found: on another device, at another size, with another driver or an older source.
struct PriorResults {
  std::string name;  ///< for people
  std::vector<std::pair<ConfigurationIndex, Outcome>> outcomes;
};

/// What a strategy may lean on when it starts.
struct StrategyContext {
  const SearchSpace* space = nullptr;
  std::uint64_t seed = 1;
  /// Expected number of evaluations; 0 when unknown.
  std::uint64_t budget = 0;
  /// Number of objectives.
  std::size_t objectives = 1;
  /// Hyperparameters by name; the rest take their documented defaults.
  std::map<std::string, Value> options;
  /// Outcomes known before the search (a resumed session): given to tell() as if they had been requested.
  std::vector<std::pair<ConfigurationIndex, Outcome>> known;
  /// Outcomes from elsewhere. They are checked against what is found here.
  std::vector<PriorResults> priors;
  /// s on a clock, so that a strategy learns what its computation costs here. Without one it counts operations, and the
  /// same outcomes give the same search.
  std::function<double()> clock;
};

/// Contract of every strategy: it never leaves the space, never asks for a configuration twice, ends (empty ask with
/// nothing outstanding) when it has nothing left, and gives the same sequence for the same seed and tells.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  /// Up to `count` configurations to evaluate next. May be fewer while it waits for outcomes; empty with nothing
  /// outstanding means it is finished.
  virtual std::vector<ConfigurationIndex> ask(std::size_t count) = 0;
  /// An outcome; also of a configuration it did not ask for, and again with a revised outcome (Objective::revision).
  virtual void tell(ConfigurationIndex index, const Outcome& outcome) = 0;
  /// Why it does what it does ("auto" names the strategy that it chose); may be empty.
  virtual std::string explanation() const { return {}; }
  /// Chance that what it requested last is better than the best by over 1 %, as its model has it; nullopt without one.
  virtual std::optional<double> prospect() const { return std::nullopt; }
  /// True for one whose search may end when nothing better is likely; those that sample, enumerate or were requested by
  /// name for their own sake go on.
  virtual bool ends_early() const { return false; }
};

/// A hyperparameter, for its help and for tuning it.
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

/// Every strategy, by name. `register_strategy` adds a user's own.
const std::vector<StrategyDescription>& strategies();
void register_strategy(StrategyDescription description);
/// Throws UserError for an unknown name or option, naming the nearest.
std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context);

}  // namespace ergotune
