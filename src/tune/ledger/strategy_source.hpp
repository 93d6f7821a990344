// A strategy's search as a source of configurations.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/strategy.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/session/racing.hpp"
#include "tune/session/session.hpp"

namespace ergotune {

class StrategySource : public Source {
 public:
  /// `space` is the ledger's space or a part of it. Results that `standing` already contains are passed to the strategy
  /// as known. `report` is called for each result. Throws UserError for an unknown strategy or option.
  StrategySource(const SearchSpace& space, Leaderboard& standing, const SessionOptions& options, double started,
                 std::function<void(const ConfigurationResult&, bool fresh)> report);

  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override;

  /// Adds a result to the leaderboard and, once begin() has been called, passes it to the strategy. Also for lists that
  /// are part of the search: the default configuration, failures to retry.
  void learn(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh);
  bool evaluations_left() const;
  /// Starts the strategy.
  void begin();
  /// Why the search ended, after the ledger has reported that this source has finished.
  std::string why_finished() const;
  const std::string& strategy() const { return name_; }
  std::string explanation() const;
  /// J used by the kernels, as far as it was measured.
  double joules() const { return joules_; }

 private:
  /// Configurations that an evaluator holds in addition to those that it compiles.
  static constexpr std::size_t kAhead = 3;
  static constexpr std::size_t kPaced = 16;
  /// A search ends by itself only after at least this many usable configurations without an improvement.
  static constexpr std::size_t kEnoughWithout = 100;

  ConfigurationIndex whole_index(ConfigurationIndex part) const;
  std::optional<ConfigurationIndex> part_index(ConfigurationIndex whole) const;
  bool half_spent() const;
  /// s of search time, without pauses from the web page.
  double seconds() const;
  bool improvement_unlikely() const;
  bool measures() const;
  RaceBound bound_of(ConfigurationIndex whole) const;
  /// The strategy's view of a configuration that was seen, with the cost of its evaluation.
  Outcome reported(ConfigurationIndex index) const;
  bool whole() const { return &space_ == &standing_.ledger().space(); }

  const SearchSpace& space_;
  Leaderboard& standing_;
  const SessionOptions& options_;
  double started_;
  std::function<void(const ConfigurationResult&, bool fresh)> report_;
  std::unique_ptr<Strategy> strategy_;
  std::string name_;
  /// Arrival times of the last fresh results, host clock.
  std::deque<double> came_;
  std::size_t under_way_ = 0;
  double joules_ = 0;
  std::size_t known_in_a_row_ = 0;  ///< known configurations that the strategy requested since the last fresh result
  double paused_before_ = 0;
};

}  // namespace ergotune
