// Screening: times first, then the energy of what can still need the least.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/strategy_source.hpp"

namespace ergotune {

/// A search for least energy. Its first part is a search by time; what energy the times come to is modelled
/// (Ledger::want_energy). The second part measures the energy of those whose modelled energy, less its uncertainty, is
/// below the best that was measured, the best by the model first, and searches on: new configurations are timed, and
/// their energy is measured where they are as promising.
class ScreeningSource : public Source {
 public:
  /// At most, so that the fastest of this search is among the first few energies as well.
  static constexpr std::size_t kIncumbents = 3;
  /// The energy of `first` is measured while the first of the search compile. The second part begins with those of
  /// `incumbents`, the best of earlier searches.
  ScreeningSource(StrategySource& search, Leaderboard& standing, const Ledger& ledger,
                  std::optional<ConfigurationIndex> first, std::set<ConfigurationIndex> incumbents)
      : search_(search), standing_(standing), ledger_(ledger), first_(first), incumbents_(std::move(incumbents)) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override;

 private:
  /// Share of the budget for times alone.
  static constexpr double kTimesAlone = 0.6;
  /// So many in a row that are too slow: slower ones are as well.
  static constexpr int kTooSlow = 8;
  /// One runs and one waits, so that the next one is chosen by all that is known then.
  static constexpr std::size_t kEnergiesAhead = 2;
  /// So many energies, the default's among them, are worth more than repeats of fewer; those of one more are worth more
  /// than further repeats.
  static constexpr std::size_t kFewEnergies = 3;
  /// Of two configurations, twice, each after some load to settle.
  static constexpr double kFewestRepeats = 5;

  /// Those whose energy is to be measured next: incumbents, then the best by the model, `room` at most.
  std::vector<ConfigurationIndex> promising(std::size_t room) const;
  /// Why there is no time for the energy of one more; empty if there is.
  std::string no_time() const;
  StrategySource::Kept keeps() const;

  StrategySource& search_;
  Leaderboard& standing_;
  const Ledger& ledger_;
  std::optional<ConfigurationIndex> first_;
  std::set<ConfigurationIndex> incumbents_;
  std::set<ConfigurationIndex> asked_;                                 ///< for their energy
  std::size_t under_way_ = 0, energies_under_way_ = 0, energies_ = 0;  ///< energies_: measured
  double energy_seconds_ = 0;                                          ///< of the last energy
  bool times_alone_ = true;
  bool ended_ = false;  ///< the search; energies may be left
};

}  // namespace ergotune
