// Common base of strategies: a queue of proposals, the cache of requested and evaluated configurations, and two
// guarantees: a search never requests a configuration twice, and it ends when the space is exhausted. A derived
// strategy only decides what to propose next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/statistics.hpp"
#include "ergotune/space.hpp"
#include "ergotune/strategy.hpp"

namespace ergotune {

/// Standard error of the first value; 0 if it is exact.
ErrorEstimate error_of(const Outcome& outcome);
/// Half-width of the 95 % interval of the difference of two outcomes' first values (Student's t, Welch's degrees).
double half_width_of_difference(const Outcome& a, const Outcome& b);

namespace search {

/// The state and value of every configuration: in an array for small spaces, in a hash table for large ones.
class EvaluationCache {
 public:
  enum class State : std::uint8_t { fresh, queued, requested, ok, failed };

  explicit EvaluationCache(std::uint64_t size);

  State state(ConfigurationIndex index) const;
  bool fresh(ConfigurationIndex index) const { return state(index) == State::fresh; }
  bool known(ConfigurationIndex index) const { return state(index) >= State::ok; }
  /// The recorded value; infinity for a failure and for unknown configurations.
  double value(ConfigurationIndex index) const;

  void set_state(ConfigurationIndex index, State state);
  void record(ConfigurationIndex index, bool ok, double value);

  std::uint64_t size() const { return size_; }
  std::uint64_t fresh_count() const { return fresh_; }
  /// A uniformly random fresh configuration (nearly uniform once few are left); nullopt if there is none.
  std::optional<ConfigurationIndex> random_fresh(Random& random) const;

 private:
  struct Entry {
    double value = std::numeric_limits<double>::infinity();
    State state = State::fresh;
  };
  static constexpr std::uint64_t kDenseLimit = 8'000'000;

  std::uint64_t size_;
  std::uint64_t fresh_;
  std::vector<State> states_;
  std::vector<double> values_;
  std::unordered_map<ConfigurationIndex, Entry> sparse_;
};

class StrategyBase : public Strategy {
 public:
  std::vector<ConfigurationIndex> ask(std::size_t count) final;
  void tell(ConfigurationIndex index, const Outcome& outcome) final;
  std::string name() const override { return name_; }

 protected:
  StrategyBase(std::string name, const StrategyContext& context);

  /// Called when the queue is empty (and, unless concurrent(), no outcome is outstanding): proposes about `wanted`
  /// configurations. It may step over known configurations, which cost nothing. If it proposes nothing new, the base
  /// class proposes a random fresh configuration: a walk that is stuck among known ones goes on from there.
  virtual void advance(std::size_t wanted) = 0;
  /// Called for each outcome, after it was recorded in memory(). `value` is infinity for a failure.
  virtual void learn(ConfigurationIndex index, double value, const Outcome& outcome);
  /// Whether advance() may be called while outcomes are outstanding.
  virtual bool concurrent() const { return false; }

  /// Queues a configuration unless it was proposed before. Returns true if it was queued.
  bool propose(ConfigurationIndex index);
  void propose_all(const std::vector<ConfigurationIndex>& list);
  /// Removes all queued configurations that were not requested yet.
  void clear_queue();
  std::size_t queued() const { return queue_.size(); }
  std::size_t outstanding() const { return outstanding_; }

  const SearchSpace& space() const { return *context_.space; }
  const StrategyContext& context() const { return context_; }
  Random& random() { return random_; }
  const EvaluationCache& memory() const { return memory_; }
  double value(ConfigurationIndex index) const { return memory_.value(index); }
  /// The best configuration so far; its value is infinity before the first success.
  ConfigurationIndex best() const { return best_; }
  double best_value() const { return best_value_; }
  std::uint64_t tell_count() const { return told_.size(); }

  /// An option's value; make_strategy() has filled in the defaults.
  double real(const std::string& option) const;
  std::int64_t integer(const std::string& option) const;
  std::string text(const std::string& option) const;

 private:
  void improve(ConfigurationIndex index, double value);

  std::string name_;
  StrategyContext context_;
  Random random_;
  EvaluationCache memory_;
  std::deque<ConfigurationIndex> queue_;
  std::size_t outstanding_ = 0;
  std::vector<ConfigurationIndex> told_;
  ConfigurationIndex best_ = 0;
  double best_value_ = std::numeric_limits<double>::infinity();
};

/// Reduces an outcome with several objectives to one number, for strategies that support one only: the product if all
/// are positive (for energy and time: the energy-delay product), else the sum.
double scalar_value(const Outcome& outcome);

/// The best of this prior, at most so many, in a space of this size.
std::vector<ConfigurationIndex> best_of(const PriorResults& prior, std::size_t size, std::size_t count);

using StrategyList = std::vector<StrategyDescription>;

/// A description whose `make` constructs a T from the context.
template <class T>
StrategyDescription describe_strategy(std::string name, std::string summary, std::vector<StrategyOption> options = {}) {
  StrategyDescription description;
  description.name = std::move(name);
  description.summary = std::move(summary);
  description.options = std::move(options);
  description.make = [](const StrategyContext& context) { return std::make_unique<T>(context); };
  return description;
}

}  // namespace search
}  // namespace ergotune
