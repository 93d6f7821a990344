#include "tune/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "ergotune/base/clock.hpp"
#include "ergotune/search/certainty.hpp"
#include "measure/combine.hpp"

namespace ergotune {
namespace {

constexpr int kConfirmationRounds = 3;
constexpr std::size_t kConfirmedCandidates = 3;
// More where noise hides who is best: those whose intervals reach the best one's.
constexpr std::size_t kNoisyCandidates = 10;
// As long as the choice among them is expected to lose more, those with a chance are measured again: so often at most.
constexpr double kAcceptedLoss = 0.003;
constexpr double kChance = 0.02;
constexpr int kRaces = 4;
// Where what was measured once looks better than all that was confirmed, it is confirmed as well: so often at most.
constexpr int kConfirmationBatches = 3;
// A board that is lost meanwhile takes its rounds with it: they begin again on another.
constexpr int kLostBoards = 3;

}  // namespace


ConfirmationSource::ConfirmationSource(const std::vector<ConfigurationIndex>& candidates, int rounds, std::string board,
                                       std::function<void(std::size_t)> each)
    : order_(candidates.size()), rounds_left_(rounds), sent_(candidates.size()), board_(std::move(board)), each_(std::move(each)) {
  for (const ConfigurationIndex index : candidates) candidates_.push_back({index, {}});
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

std::vector<Wanted> ConfirmationSource::next(std::size_t room) {
  if (sent_ == order_.size()) {
    if (under_way_ > 0 || rounds_left_ == 0) return {};
    --rounds_left_;
    sent_ = 0;
    random_.shuffle(std::span(order_));
  }
  std::vector<Wanted> list;
  while (sent_ < order_.size() && list.size() < room) {
    Wanted wanted;
    wanted.index = candidates_[order_[sent_++]].index;
    wanted.kind = RowKind::confirmation;
    wanted.board = board_;
    list.push_back(wanted);
  }
  under_way_ += list.size();
  return list;
}

void ConfirmationSource::take(const Wanted& wanted, const Measurement& measurement, bool) {
  --under_way_;
  boards_.insert(wanted.board);
  for (Candidate& candidate : candidates_) {
    if (candidate.index == wanted.index) candidate.rounds.push_back(measurement);
  }
  if (each_) each_(static_cast<std::size_t>(rounds_left_) * order_.size() + order_.size() - sent_ + under_way_);
}

Confirmation::Confirmation(Ledger& ledger, Objective& objective, Standing& standing,
                           std::optional<ConfigurationIndex> beside, Tell tell)
    : ledger_(ledger), objective_(objective), standing_(standing), beside_(beside), tell_(std::move(tell)) {}

/// Who is confirmed next: the first of the ranking that are not yet, and the default beside them.
std::vector<ConfigurationIndex> Confirmation::candidates() {
  const std::vector<ConfigurationIndex> ranking = standing_.candidates();
  std::optional<ConfigurationIndex> leader;
  if (!ranking.empty() && is_confirmed(ranking.front())) leader = ranking.front();
  std::vector<ConfigurationIndex> list;
  for (const ConfigurationIndex index : ranking) {
    if (list.size() == kNoisyCandidates) break;
    if (list.size() >= kConfirmedCandidates && !near_best(index, ranking.front())) break;
    if (is_confirmed(index) || unconfirmable_.contains(index)) continue;
    // Once somebody is confirmed, only those who look better than him are asked to show it.
    if (leader && !objective_.better(standing_.judged(index), standing_.judged(*leader))) continue;
    list.push_back(index);
  }
  if (!list.empty() && leader && std::find(list.begin(), list.end(), *leader) == list.end()) list.push_back(*leader);
  const bool beside_usable = beside_ && standing_.seen(*beside_) && standing_.outcome(*beside_).ok;
  if (!list.empty() && beside_usable && std::find(list.begin(), list.end(), *beside_) == list.end())
    list.push_back(*beside_);
  return list;
}

/// Of several the first that is there; empty where there is one.
std::string Confirmation::choose_board() const {
  const std::vector<BoardShare> boards = ledger_.evaluator().boards();
  if (std::any_of(boards.begin(), boards.end(), [&](const BoardShare& b) { return b.board == board_ && !b.lost; })) return board_;
  const auto first = std::find_if(boards.begin(), boards.end(), [](const BoardShare& b) { return !b.lost; });
  return first == boards.end() ? std::string() : first->board;
}

double Confirmation::expected_round(const std::vector<ConfigurationIndex>& candidates) const {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0, [&](double sum, ConfigurationIndex index) {
    return sum + ledger_.find(index)->measurement.measure_seconds;
  });
}

bool Confirmation::confirm(std::vector<ConfigurationIndex> candidates) {
  if (const std::string board = choose_board(); board != board_) {
    rounds_.clear();
    board_ = board;
  }
  // What was confirmed on another board says nothing beside these: it is measured again.
  for (const ConfigurationIndex index : standing_.order()) {
    const bool elsewhere = is_confirmed(index) && ledger_.find(index)->board != board_;
    if (elsewhere && std::find(candidates.begin(), candidates.end(), index) == candidates.end()) candidates.push_back(index);
  }
  const double round = expected_round(candidates), began = host_seconds();
  const std::size_t all = candidates.size() * kConfirmationRounds;
  const auto tell = [&](std::size_t left) {
    const auto done = static_cast<double>(all - left), open = static_cast<double>(left);
    if (tell_) tell_(done > 0 ? (host_seconds() - began) / done * open : round * kConfirmationRounds);
  };
  ledger_.set_phase("confirming");
  tell(all);
  ConfirmationSource source(candidates, kConfirmationRounds, board_, tell);
  if (!ledger_.drive(source).empty()) return false;
  if (source.boards().size() > 1 && lost_boards_++ < kLostBoards) return confirm(std::move(candidates));
  for (const ConfirmationSource::Candidate& candidate : source.candidates()) {
    std::vector<Measurement>& rounds = rounds_[candidate.index];
    rounds.insert(rounds.end(), candidate.rounds.begin(), candidate.rounds.end());
    Measurement mean = combine(rounds);
    // What worked before and could not be measured again is not confirmed; only a wrong result speaks against it.
    if (!usable(mean.status) && mean.status != Status::wrong_result) {
      unconfirmable_.insert(candidate.index);
      ledger_.warn(candidate.index, "it could not be confirmed: " + mean.message);
      standing_.see(candidate.index);
      continue;
    }
    ledger_.confirm(candidate.index, std::move(mean), static_cast<int>(rounds.size()), objective_.spec(), board_);
    standing_.see(candidate.index);
  }
  standing_.judge_again();
  return true;
}

bool Confirmation::possible() const {
  return ledger_.evaluator().provenance() == Provenance::measured && objective_.kind() != Objective::Kind::pareto &&
         !ledger_.interrupted();
}

void Confirmation::run(bool fresh) {
  if (!possible()) return;
  // What was confirmed once, and has no new rival, is not measured again by the same command.
  const std::vector<ConfigurationIndex> ranking = standing_.ranking();
  if (!fresh && !ranking.empty() && is_confirmed(ranking.front())) return;
  const double before = host_seconds(), waited = ledger_.waited();
  for (int batch = 0; batch < kConfirmationBatches; ++batch) {
    const std::vector<ConfigurationIndex> list = candidates();
    if (list.empty() || !confirm(list)) break;
  }
  if (!rounds_.empty() && objective_.kind() == Objective::Kind::single) race();
  seconds_ += host_seconds() - before - (ledger_.waited() - waited);
}

/// Whether their intervals leave it open which is better.
bool Confirmation::near_best(ConfigurationIndex index, ConfigurationIndex best) const {
  const Outcome &a = standing_.outcome(index), &b = standing_.outcome(best);
  if (objective_.kind() != Objective::Kind::single || !a.ok || !b.ok) return false;
  if (a.standard_errors.empty() || b.standard_errors.empty()) return false;
  return a.values.front() - b.values.front() < 2 * std::hypot(a.standard_errors.front(), b.standard_errors.front());
}

Confirmation::Confirmed Confirmation::confirmed() {
  Confirmed list;
  for (const ConfigurationIndex index : standing_.ranking()) {
    if (!is_confirmed(index)) continue;
    const Outcome& outcome = standing_.outcome(index);
    if (!outcome.ok) continue;
    list.indices.push_back(index);
    list.values.push_back(outcome.values.front());
    list.errors.push_back(outcome.standard_errors.empty() ? 0.0 : outcome.standard_errors.front());
  }
  return list;
}

/// Measures those again that may still be the best, until the choice among them is expected to lose next to nothing.
void Confirmation::race() {
  for (int turn = 0; turn < kRaces; ++turn) {
    const Confirmed list = confirmed();
    if (expected_loss(list.values, list.errors) < kAcceptedLoss) return;
    const std::vector<double> chances = probability_of_being_best(list.values, list.errors);
    std::vector<ConfigurationIndex> rivals;
    for (std::size_t i = 0; i < list.indices.size(); ++i)
      if ((i == 0 || chances[i] > kChance) && rounds_.contains(list.indices[i])) rivals.push_back(list.indices[i]);
    if (rivals.size() < 2 || !confirm(rivals)) return;
  }
}

Confidence Confirmation::confidence() {
  Confidence out;
  const std::vector<ConfigurationIndex> ranking = standing_.ranking();
  // What was confirmed for another objective had other rivals.
  if (objective_.kind() == Objective::Kind::pareto || ranking.empty() || !is_confirmed(ranking.front())) return out;
  out.confirmation_rounds = ledger_.find(ranking.front())->rounds;
  const Confirmed list = confirmed();
  if (list.values.empty()) return out;
  out.probability_best = probability_of_being_best(list.values, list.errors).front();
  if (objective_.kind() == Objective::Kind::single) out.expected_loss = expected_loss(list.values, list.errors);
  return out;
}

}  // namespace ergotune
