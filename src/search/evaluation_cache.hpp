// What has become of every configuration of a space: the bookkeeping behind "nothing is evaluated twice".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

/// An array per configuration where the space is small enough for that, a hash table where it is not.
class EvaluationCache {
 public:
  enum class State : std::uint8_t { fresh, queued, asked, ok, failed };

  explicit EvaluationCache(std::uint64_t size);

  State state(ConfigurationIndex index) const;
  bool fresh(ConfigurationIndex index) const { return state(index) == State::fresh; }
  bool known(ConfigurationIndex index) const { return state(index) >= State::ok; }
  /// The value it was told; infinity for a failure and for what is not known yet.
  double value(ConfigurationIndex index) const;

  void set_state(ConfigurationIndex index, State state);
  void record(ConfigurationIndex index, bool ok, double value);

  std::uint64_t size() const { return size_; }
  std::uint64_t fresh_count() const { return fresh_; }
  /// Uniform (nearly so once most of the space is used up) over the fresh ones; nullopt when there is none.
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

}  // namespace ergotune::search
