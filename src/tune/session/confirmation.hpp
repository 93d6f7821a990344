// The best candidates are measured again, side by side, before the winner is reported.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ergotune/random.hpp"
#include "search/certainty.hpp"
#include "search/ranking.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/ledger.hpp"
#include "tune/session/session.hpp"

namespace ergotune {

/// One round's measurement of a candidate.
struct ConfirmationRound {
  int number = 0;  ///< shared by all that were measured in that round
  Measurement measurement;
};

/// Rounds of confirmation as a source: each candidate once a round, in an order of its own each round, so that drift of
/// the GPU does not favour one of them. The next round begins when the last one has ended.
class ConfirmationSource : public Source {
 public:
  struct Candidate {
    ConfigurationIndex index = 0;
    std::vector<ConfirmationRound> rounds;
  };

  /// `GPU`: the one of several that measures them all; empty where there is one. `first`: number of the first round.
  /// `each`: called after each measurement with the number of those that are still to come. `another`: called before
  /// each round after the first; returns how many of the candidates, the first ones, there is room for.
  ConfirmationSource(const std::vector<ConfigurationIndex>& candidates, int rounds, std::string gpu = {}, int first = 0,
                     std::function<void(std::size_t left)> each = {}, std::function<std::size_t()> another = {});
  /// The GPUs that did: more than one where the first was lost meanwhile.
  const std::set<std::string>& gpus() const { return gpus_; }
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  /// With all of their rounds once the ledger says that the source has finished.
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> order_;
  int round_, rounds_left_;
  std::size_t sent_, under_way_ = 0;
  std::string gpu_;
  std::function<void(std::size_t)> each_;
  std::function<std::size_t()> another_;
  bool begun_ = false;
  std::set<std::string> gpus_;
  Random random_{7};
};

/// Confirms the leader of a leaderboard, for searches and plans. Nothing is confirmed if values are not measured, or if
/// there is no single best (Pareto).
class Confirmation {
 public:
  /// Receives the expected remaining time in s, including rounds that are likely to follow.
  using ReportTimeLeft = std::function<void(double seconds_left)>;
  /// How many more repeats the budget allows after these.
  using Room = std::function<std::size_t(const RepeatCost& so_far)>;
  /// `beside`: is confirmed with the others when it works (the default). `report_time_left`: called when a batch
  /// begins, and after each measurement.
  Confirmation(Ledger& ledger, Objective& objective, Leaderboard& standing, std::optional<ConfigurationIndex> beside,
               ReportTimeLeft report_time_left);
  /// The best candidates side by side, then whoever could still be better than what was confirmed, then those between
  /// whom it is open. `fresh`: something was measured since; else what was confirmed before is not measured again.
  /// `room`: as far as it reaches, fewer candidates and repeats where that is too little for all.
  void run(bool fresh, Room room = {});
  /// The best of earlier searches: the first of them is confirmed beside the leader.
  void compare_with(std::set<ConfigurationIndex> incumbents) { incumbents_ = std::move(incumbents); }
  /// What the first candidates will take, by what is known so far; no repeats where nothing will be confirmed.
  RepeatCost expected() const;
  bool has_confirmed_best() const;
  /// Whether it ended, or did not begin, for want of room.
  bool cut_short() const { return cut_short_; }
  /// Measurements so far.
  std::size_t measured() const { return done_; }
  /// Of the first of the standing's ranking.
  Confidence confidence();
  /// s that it took, without waiting for the evaluator.
  double seconds() const { return seconds_; }

 private:
  bool possible() const;
  bool is_confirmed(ConfigurationIndex index) const { return ledger_.find(index)->confirmed_for == objective_.spec(); }
  std::vector<ConfigurationIndex> candidates();
  std::vector<ConfigurationIndex> outdated(const std::vector<ConfigurationIndex>& ranking) const;
  std::vector<ConfigurationIndex> first_candidates(const std::vector<ConfigurationIndex>& ranking) const;
  std::vector<ConfigurationIndex> rivals_of(ConfigurationIndex leader,
                                            const std::vector<ConfigurationIndex>& ranking) const;
  bool confirm(std::vector<ConfigurationIndex> candidates, int rounds);
  void align_earlier();
  std::string choose_device() const;
  /// What a repeat of these takes: by what the repeats took so far, else by what the search did.
  RepeatCost so_far(const std::vector<ConfigurationIndex>& candidates) const;
  /// Rounds of these that there is room for, of those wanted; leaves out the last of the candidates where a comparison
  /// begins and there is too little for all.
  bool are_new(const std::vector<ConfigurationIndex>& candidates) const;
  int fit(std::vector<ConfigurationIndex>& candidates, int wanted);
  bool near_best(ConfigurationIndex index, ConfigurationIndex best) const;
  /// How the search's values, corrected for devices and drift, changed in the confirmation.
  Repeats repeats() const;
  /// The same from stored values, as `show` computes it.
  Repeats stored_repeats() const;
  /// The mean of each candidate over its rounds, corrected to the mean round.
  std::map<ConfigurationIndex, Measurement> means() const;
  /// Candidates measured here, best first, with their probabilities; standings(): nullopt for fewer than two.
  struct Standings {
    std::vector<ConfigurationIndex> indices;
    ChoiceProbabilities chances;
  };
  std::optional<Standings> standings();
  void race(bool until_certain);

  Ledger& ledger_;
  Objective& objective_;
  Leaderboard& standing_;
  std::optional<ConfigurationIndex> beside_;
  ReportTimeLeft report_time_left_;
  std::set<ConfigurationIndex> unconfirmable_;                           ///< none of their repeats worked
  std::map<ConfigurationIndex, std::vector<ConfirmationRound>> rounds_;  ///< of this confirmation
  std::map<ConfigurationIndex, Measurement> searched_;                   ///< what they were judged by before
  std::map<ConfigurationIndex, ConfigurationResult> earlier_;            ///< as an earlier run confirmed them
  int next_round_ = 0;
  std::string gpu_;  ///< that measured them
  int lost_gpus_ = 0;
  double began_ = 0;  ///< Ledger::now()
  /// Measurements so far, and those that are expected to follow the batch that is under way.
  std::size_t done_ = 0, expected_further_ = 0;
  double seconds_ = 0;
  Room room_;
  std::set<ConfigurationIndex> incumbents_;
  bool cut_short_ = false;
};

/// Effects that all candidates share in one round: for each candidate, the mean factor by which its rounds took more
/// than the mean round. Model: logarithm = candidate
/// + round + noise, with normally distributed round effects of estimated variance, so that noise is not taken for
/// drift. All factors are 1 if each candidate was in every round. Values must be positive.
std::vector<double> repeat_bias_factors(const std::vector<std::vector<RoundValue>>& candidates);

}  // namespace ergotune
