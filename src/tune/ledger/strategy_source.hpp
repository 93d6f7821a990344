// A strategy's search as a source of configurations.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/strategy.hpp"
#include "store/result_set.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/session/session.hpp"

namespace ergotune {

// Racing: the measurement of a configuration ends where it can no longer win.

/// Above this value of a quantity (time or energy) a configuration cannot win any more.
struct RaceBound {
  std::string quantity = "time";
  double above = 1e300;  ///< 1e300: nothing rules it out
};

/// The best result so far, against which a configuration races.
struct RaceLeader {
  const Measurement* measurement = nullptr;
  double value = 0, half_width = 0;  ///< of the objective, turned so that smaller is better
};

/// Time and energy are compared directly. For a metric or expression over one of them, the bound is the value of the
/// quantity at which, with this configuration's parameters, the objective would equal the upper end of the leader's
/// interval. No bound if the objective needs several quantities, does not increase with the quantity, or is not a
/// single one.
RaceBound race_bound(const Objective& objective, const Problem* problem, const Constants& constants,
                     const SearchSpace& space, ConfigurationIndex index, const RaceLeader& leader);

class StrategySource : public Source {
 public:
  /// `space` is the ledger's or a part of it. What `standing` has seen is passed to the strategy as known. `report` is
  /// called for each result; `again`: of a configuration that had one before. Throws UserError for an unknown strategy
  /// or option.
  StrategySource(const SearchSpace& space, Leaderboard& standing, const SessionOptions& options, double started,
                 std::function<void(const ConfigurationResult&, bool fresh, bool again)> report);

  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override;
  /// What is kept of a budget for measuring the best again: what keep_for_confirmation() expects, at most `share` of
  /// the budget, or up to kMostKept where that is less than `fewest` repeats, which compare nothing.
  struct Kept {
    double fewest = 6;  ///< the two best and the default, twice
    double share = 0.25;
  };
  /// Of that, what leaves no choice: a request, a budget that is spent, or a search in which nothing works.
  /// `ahead`: in so many seconds.
  std::string must_stop() { return must_stop({}); }
  std::string must_stop(const Kept& keep);
  std::string budget_spent(const Kept& keep, double ahead = 0) const;
  /// Of the budget that is closest to its end; 0 where there is none.
  double share_spent() const;
  RaceBound bound_of(ConfigurationIndex whole) const;

  /// Adds a result to the leaderboard and, once begin() has been called, passes it to the strategy. Also for lists that
  /// are part of the search: the default configuration, failures to retry.
  void learn(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh);
  bool evaluations_left() const;
  void keep_for_confirmation(std::function<RepeatCost()> expected) { expected_ = std::move(expected); }
  /// Begins the search itself.
  void begin();
  /// Why the search ended, after the ledger has reported that this source has finished.
  std::string why_finished() const;
  const std::string& strategy() const { return name_; }
  std::string explanation() const;
  /// s of searching: none elapse while it is paused from the web page.
  double seconds() const;
  /// J that the kernels have used, as far as they were measured.
  double joules() const { return joules_; }

 private:
  /// Configurations that an evaluator holds in addition to those that it compiles.
  static constexpr std::size_t kAhead = 3;
  static constexpr std::size_t kPaced = 16;
  static constexpr double kMostKept = 1.0 / 3;
  /// Configurations that end at their time limit, without one that works, after which more are not tried.
  static constexpr std::size_t kMostTimeouts = 3;
  /// The same for wrong results: a default that is wrong may have companions in a small part of the space.
  static constexpr std::size_t kMostWrongResults = 20;
  /// The same for compile errors, if there are no other failures and the first errors differ in numbers at most.
  static constexpr std::size_t kMostCompileErrors = 20;
  /// Usable configurations without a better one, at least, before a search ends by itself.
  static constexpr std::size_t kEnoughWithout = 100;

  ConfigurationIndex whole_index(ConfigurationIndex part) const;
  std::optional<ConfigurationIndex> part_index(ConfigurationIndex whole) const;
  bool half_spent() const;
  const RepeatCost& kept() const;
  /// Of a budget, the most that is kept for repeats that cost `each`; 0: they would compare nothing.
  static double most_kept(double budget, double each, const Kept& keep);
  /// Of the budget, those that are the search's; 0: no bound.
  std::uint64_t evaluations() const;
  bool improvement_unlikely() const;
  bool measures() const;
  /// The strategy's view of a configuration that was seen: with what evaluating it cost.
  Outcome reported(ConfigurationIndex index) const;
  bool whole() const { return &space_ == &standing_.ledger().space(); }

  const SearchSpace& space_;
  Leaderboard& standing_;
  const SessionOptions& options_;
  double started_;
  std::function<void(const ConfigurationResult&, bool fresh, bool again)> report_;
  std::unique_ptr<Strategy> strategy_;
  std::string name_;
  /// Arrival times of the last fresh results, host clock.
  std::deque<double> came_;
  std::size_t under_way_ = 0;
  double joules_ = 0;
  std::function<RepeatCost()> expected_;
  mutable RepeatCost kept_;
  mutable std::size_t kept_at_ = 0;               ///< results when that was worked out
  std::size_t learned_ = 0, known_in_a_row_ = 0;  ///< results; requested by the strategy since the last fresh result
  std::size_t timeouts_ = 0, wrong_results_ = 0;
  FailureGroups failures_;
  double paused_before_ = 0;
};

}  // namespace ergotune
