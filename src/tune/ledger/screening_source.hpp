// Screening: times first, then the energy of what can still need the least.
#pragma once

#include <set>

#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/strategy_source.hpp"

namespace ergotune {

/// A search for least energy. Its first part measures times alone; what energy they come to is modelled
/// (Ledger::screen). The second part measures the energy of those whose modelled energy, less its uncertainty, is below
/// the best that was measured, the best by the model first, and searches on: new configurations are timed, and their
/// energy is measured where they are as promising.
class ScreeningSource : public Source {
 public:
  ScreeningSource(StrategySource& search, Leaderboard& standing, const Ledger& ledger)
      : search_(search), standing_(standing), ledger_(ledger) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override;

 private:
  /// Share of the budget for times alone.
  static constexpr double kTimesAlone = 0.4;
  /// So many in a row that are too slow: slower ones are as well.
  static constexpr int kTooSlow = 8;

  /// The best by the model whose energy is to be measured, `room` at most.
  std::vector<ConfigurationIndex> promising(std::size_t room) const;

  StrategySource& search_;
  Leaderboard& standing_;
  const Ledger& ledger_;
  std::set<ConfigurationIndex> asked_;  ///< for their energy
  std::size_t under_way_ = 0;
  bool times_alone_ = true;
  bool ended_ = false;  ///< the search; energies may be left
};

}  // namespace ergotune
