// Screening: times first, then the energy of what can still need the least.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tune/ledger/energy_choice.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/strategy_source.hpp"

namespace ergotune {

/// A search for least energy. Its first part is a search by time; what energy the times come to is modelled
/// (Ledger::want_energy). The second part measures the energy of those whose modelled energy, less its uncertainty, is
/// below the best that was measured, in the order of by_expected_improvement(), and searches on: new configurations are
/// timed, and their energy is measured where they are as promising.
class ScreeningSource : public Source {
 public:
  /// At most, so that the fastest of this search is among the first few energies as well.
  static constexpr std::size_t kIncumbents = 3;
  /// So many of earlier searches are timed first.
  static constexpr std::size_t kKnown = 12;
  /// The energy of `first` is measured while the first of the search compile. Times begin with those of `known`, the
  /// best of earlier searches, energies of the second part with those of `incumbents`, the very best of each.
  ScreeningSource(StrategySource& search, Leaderboard& standing, const Ledger& ledger,
                  std::optional<ConfigurationIndex> first, std::set<ConfigurationIndex> incumbents,
                  std::deque<ConfigurationIndex> known)
      : search_(search),
        standing_(standing),
        ledger_(ledger),
        first_(first),
        incumbents_(std::move(incumbents)),
        earlier_(!known.empty()),
        known_(std::move(known)) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override;

 private:
  /// Share of the budget for times alone; where those of an earlier search are known.
  static constexpr double kTimesAlone = 0.6, kTimesAloneAfterAnother = 0.45;
  /// Of which the next one is chosen, and energies by which: those most promising by time, and the least.
  static constexpr std::size_t kCandidates = 32;
  /// So many in a row that are too slow: slower ones are as well.
  static constexpr int kTooSlow = 8;
  /// One runs and one waits, so that the next one is chosen by all that is known then.
  static constexpr std::size_t kEnergiesAhead = 2;
  /// So many energies, the default's among them, are worth more than repeats of fewer; those of one more are worth more
  /// than further repeats.
  static constexpr std::size_t kFewEnergies = 9;
  /// Of two configurations, twice, each after some load to settle.
  static constexpr double kFewestRepeats = 5;

  /// Those whose energy is to be measured next: incumbents, then the most promising, `room` at most.
  std::vector<ConfigurationIndex> promising(std::size_t room) const;
  /// What was measured, the least first, `kCandidates` at most.
  std::vector<TimedConfiguration> least_energies() const;
  /// Why there is no time for the energy of one more; empty if there is.
  std::string no_time() const;
  StrategySource::Kept keeps() const;

  StrategySource& search_;
  Leaderboard& standing_;
  const Ledger& ledger_;
  std::optional<ConfigurationIndex> first_;
  std::set<ConfigurationIndex> incumbents_;
  bool earlier_;                                                       ///< whether another search came before
  std::deque<ConfigurationIndex> known_;                               ///< of it, those still to be timed
  std::set<ConfigurationIndex> timed_;                                 ///< for that, not by the search
  std::set<ConfigurationIndex> asked_;                                 ///< for their energy
  std::size_t under_way_ = 0, energies_under_way_ = 0, energies_ = 0;  ///< energies_: measured
  double energy_seconds_ = 0;                                          ///< of the last energy
  bool times_alone_ = true;
  bool ended_ = false;  ///< the search; energies may be left
};

}  // namespace ergotune
