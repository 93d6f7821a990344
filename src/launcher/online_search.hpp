// Online tuning: which of the application's launches run another configuration, so that all launches together take at
// most a given share longer than without. Knows no device.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/regret_bound.hpp"
#include "ergotune/space.hpp"
#include "ergotune/strategy.hpp"

namespace ergotune::launcher {

class OnlineSearch : public RegretBound {
 public:
  /// Launches of a configuration that are measured, after a first one; kMostLaunches: where its median is lower than
  /// that of running(), and other work has prolonged too many for certainty.
  static constexpr std::size_t kLaunches = 5, kMostLaunches = 15;
  static constexpr std::uint64_t kMostTrials = 100, kNever = std::numeric_limits<std::uint64_t>::max();

  /// `start`: the configuration that runs without online tuning, whose first launches are measured.
  OnlineSearch(SearchSpace space, ConfigurationIndex start, double bound);

  /// A launch to measure.
  struct Step {
    ConfigurationIndex index = 0;
    bool first = false;  ///< of this configuration
  };
  /// Returns the next one; nullopt at the end of the search.
  std::optional<Step> next();
  /// Number of the launch from which on the bound admits that step; kNever: none.
  std::uint64_t due(const Step& step) const;
  /// So many launches were queued so far.
  void count(std::uint64_t launches);
  /// A step took `seconds`; nullopt: the configuration failed. `excess`: by how many s the launch took longer than one
  /// with running() takes.
  void take(const Step& step, std::optional<double> seconds, double excess);

  /// The configuration of all other launches: the best that is certain.
  ConfigurationIndex running() const { return running_; }
  ConfigurationIndex start() const { return start_; }
  /// Configurations that were launched.
  std::uint64_t tried() const { return tried_; }
  /// Median of the measured launches, s; 0 if there are none.
  struct Time {
    double seconds = 0, standard_error = 0;
    std::size_t n = 0;
  };
  Time time(ConfigurationIndex index) const;
  const SearchSpace& space() const { return *space_; }

 private:
  /// Whether that is certain (95 %) whatever the distribution: other work on the machine prolongs single launches.
  bool faster(ConfigurationIndex one, ConfigurationIndex other) const;
  void end_trial(std::optional<double> seconds);

  std::unique_ptr<SearchSpace> space_;  ///< at the address that the strategy knows
  std::unique_ptr<Strategy> strategy_;
  ConfigurationIndex start_, running_;
  std::optional<ConfigurationIndex> candidate_;
  double shortest_ = 0;                                      ///< launch of the candidate, s; also its first
  std::map<ConfigurationIndex, std::vector<double>> times_;  ///< without the first launch of each
  std::map<ConfigurationIndex, std::vector<double>> again_;  ///< those of the repeats at the end
  std::uint64_t counted_ = 0, tried_ = 0, repeats_ = 0;
};

}  // namespace ergotune::launcher
