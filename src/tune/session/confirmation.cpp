#include "tune/session/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "measure/metrics.hpp"

namespace ergotune {
namespace {

// Of the leader and its rivals. Nothing is compared by fewer than kFewestRounds: one may fall into a quiet moment.
constexpr int kConfirmationRounds = 3, kFewestRounds = 2;
// EvaluationRequest::settle_seconds of the first rounds; those after them, which decide between few, have
// kSettleSeconds.
constexpr double kFirstSettleSeconds = 0.1;
constexpr std::size_t kConfirmedCandidates = 2;
// Those that a budget keeps time for: another may follow where the repeats differ more than was expected.
constexpr std::size_t kExpectedCandidates = 3;
// Number of candidates if noise hides which is best: those whose intervals reach that of the best.
constexpr std::size_t kNoisyCandidates = 10;
// While the expected loss of the choice exceeds kAcceptedLoss, candidates with a probability above kChance are
// repeated round by round, at most kRaces times.
constexpr double kAcceptedLoss = 0.003;
constexpr double kChance = 0.02;
constexpr int kRaces = 12;
// s that a confirmation may always take, even if the measurements of the search took less.
constexpr double kShortConfirmation = 0.5;
// Results measured once whose expected gain exceeds that loss are confirmed as well, in at most this many batches.
constexpr int kConfirmationBatches = 3;
// The repeats on a GPU that is lost meanwhile are repeated on another one, at most this many times.
constexpr int kLostGpus = 3;
// The best of earlier searches is confirmed where it was worse than the leader by less than this share, which may be
// noise.
constexpr double kMaybeNoise = 0.05;
constexpr std::size_t kFewestCandidates = 2;
constexpr const char* kAligned =
    "an earlier run confirmed it: its values are changed by the factor by which those changed that both confirmed";

}  // namespace

ConfirmationSource::ConfirmationSource(const std::vector<ConfigurationIndex>& candidates, int rounds, std::string gpu,
                                       int first, std::function<void(std::size_t)> each,
                                       std::function<std::size_t()> another)
    : order_(candidates.size()),
      round_(first - 1),
      rounds_left_(rounds),
      sent_(candidates.size()),
      gpu_(std::move(gpu)),
      each_(std::move(each)),
      another_(std::move(another)) {
  for (const ConfigurationIndex index : candidates) candidates_.push_back({index, {}});
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

std::vector<ConfigurationRequest> ConfirmationSource::next(std::size_t room) {
  if (sent_ == order_.size()) {
    if (under_way_ > 0 || rounds_left_ == 0) return {};
    if (std::exchange(begun_, true) && another_) {
      order_.resize(std::min(order_.size(), another_()));
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      if (order_.empty()) {
        rounds_left_ = 0;
        return {};
      }
    }
    --rounds_left_;
    ++round_;
    sent_ = 0;
    random_.shuffle(std::span(order_));
  }
  std::vector<ConfigurationRequest> list;
  while (sent_ < order_.size() && list.size() < room) {
    ConfigurationRequest wanted;
    wanted.index = candidates_[order_[sent_++]].index;
    wanted.kind = RowKind::confirmation;
    wanted.gpu = gpu_;
    wanted.settle_seconds = round_ < kFewestRounds ? kFirstSettleSeconds : kSettleSeconds;
    list.push_back(wanted);
  }
  under_way_ += list.size();
  return list;
}

void ConfirmationSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool) {
  --under_way_;
  gpus_.insert(wanted.gpu);
  for (Candidate& candidate : candidates_) {
    if (candidate.index == wanted.index) candidate.rounds.push_back({round_, measurement});
  }
  if (each_) each_(static_cast<std::size_t>(rounds_left_) * order_.size() + order_.size() - sent_ + under_way_);
}

Confirmation::Confirmation(Ledger& ledger, Objective& objective, Leaderboard& standing,
                           std::optional<ConfigurationIndex> beside, ReportTimeLeft report_time_left)
    : ledger_(ledger),
      objective_(objective),
      standing_(standing),
      beside_(beside),
      report_time_left_(std::move(report_time_left)) {}

/// The candidates to confirm next, with the leader and, once in a run, the default configuration, which come first: a
/// small budget leaves out the last ones.
std::vector<ConfigurationIndex> Confirmation::candidates() {
  const std::vector<ConfigurationIndex> ranking = standing_.candidates(), leading = standing_.ranking();
  if (leading.empty()) return {};
  const bool begun = is_confirmed(leading.front());
  std::vector<ConfigurationIndex> list = outdated(leading);
  if (list.empty()) list = begun ? rivals_of(leading.front(), ranking) : first_candidates(ranking);
  if (list.empty()) return list;
  std::vector<ConfigurationIndex> all;
  const auto add = [&](ConfigurationIndex index) {
    if (std::ranges::find(all, index) == all.end()) all.push_back(index);
  };
  add(begun ? leading.front() : list.front());
  if (rounds_.empty()) {  // the best of an earlier run, with which the others that it confirmed are compared
    const auto known = std::ranges::find_if(leading, [&](ConfigurationIndex index) { return is_confirmed(index); });
    if (known != leading.end() && !unconfirmable_.contains(*known)) add(*known);
  }
  const bool beside =
      beside_ && !rounds_.contains(*beside_) && standing_.seen(*beside_) && standing_.outcome(*beside_).ok;
  if (beside && !is_confirmed(*beside_)) add(*beside_);
  for (const ConfigurationIndex index : list) add(index);
  if (beside) add(*beside_);
  return all;
}

/// Results that an earlier run confirmed, under another load, and that rank before all results confirmed in this run.
std::vector<ConfigurationIndex> Confirmation::outdated(const std::vector<ConfigurationIndex>& ranking) const {
  std::vector<ConfigurationIndex> list;
  if (rounds_.empty()) return list;
  for (const ConfigurationIndex index : ranking) {
    if (unconfirmable_.contains(index)) continue;
    if (rounds_.contains(index)) {
      if (!list.empty()) list.push_back(index);
      break;
    }
    if (is_confirmed(index)) list.push_back(index);
  }
  return list;
}

/// The first of the ranking, the best that was known before if noise may hide that it is as good, and those whose
/// intervals reach that of the first.
std::vector<ConfigurationIndex> Confirmation::first_candidates(const std::vector<ConfigurationIndex>& ranking) const {
  std::vector<ConfigurationIndex> order, list;
  std::ranges::copy_if(ranking, std::back_inserter(order),
                       [&](ConfigurationIndex index) { return !unconfirmable_.contains(index); });
  const auto known = std::ranges::find_if(order, [&](ConfigurationIndex index) {
    const Outcome &outcome = standing_.outcome(index), &best = standing_.outcome(order.front());
    if (!incumbents_.contains(index) || !outcome.ok || !best.ok) return false;
    return outcome.values.front() - best.values.front() < kMaybeNoise * std::abs(best.values.front());
  });
  if (known != order.end() && known != order.begin()) std::rotate(order.begin() + 1, known, known + 1);
  for (const ConfigurationIndex index : order) {
    if (list.size() == kNoisyCandidates) break;
    if (list.size() < kConfirmedCandidates || near_best(index, ranking.front())) list.push_back(index);
  }
  return list;
}

/// Results measured once that may be better than the confirmed ones, the most promising first, and results confirmed by
/// an earlier run that are as close, since they were not interleaved with these.
std::vector<ConfigurationIndex> Confirmation::rivals_of(ConfigurationIndex leader,
                                                        const std::vector<ConfigurationIndex>& ranking) const {
  const Outcome best = objective_.outcome(standing_.measurement(leader));
  const Repeats of_search = repeats();
  std::vector<std::pair<double, ConfigurationIndex>> promising, earlier;
  for (const ConfigurationIndex index : ranking) {
    if (rounds_.contains(index) || index == leader) continue;
    double gain = objective_.better(standing_.judged(index), standing_.measurement(leader)) ? kAcceptedLoss : 0;
    if (objective_.kind() == Objective::Kind::single)
      gain = expected_gain(standing_.outcome(index), best, is_confirmed(index) ? Repeats{} : of_search);
    if (gain >= kAcceptedLoss) (is_confirmed(index) ? earlier : promising).emplace_back(-gain, index);
  }
  if (promising.empty()) return {};
  std::vector<ConfigurationIndex> list;
  for (auto* some : {&promising, &earlier}) {
    std::ranges::stable_sort(*some, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [gain, index] : *some)
      if (list.size() < kNoisyCandidates) list.push_back(index);
  }
  return list;
}

Repeats Confirmation::repeats() const {
  std::vector<MeasuredTwice> pairs;
  for (const ConfigurationIndex index : standing_.order()) {
    const ConfigurationResult& entry = *ledger_.find(index);
    if (!is_confirmed(index)) continue;
    const auto here = searched_.find(index);
    if (here != searched_.end())
      pairs.emplace_back(&here->second, &entry.measurement);
    else if (entry.searched && entry.gpu.empty())
      pairs.emplace_back(&*entry.searched, &entry.measurement);
  }
  return repeatability_of(objective_, pairs);
}

Repeats Confirmation::stored_repeats() const {
  std::vector<MeasuredTwice> pairs;
  for (const ConfigurationIndex index : standing_.order()) {
    const ConfigurationResult& entry = *ledger_.find(index);
    if (is_confirmed(index) && entry.searched) pairs.emplace_back(&*entry.searched, &entry.measurement);
  }
  return repeatability_of(objective_, pairs);
}

/// Of several GPUs the first that is available; empty if there is only one.
std::string Confirmation::choose_device() const {
  const std::vector<DeviceShare> gpus = ledger_.evaluator().gpus();
  if (std::ranges::any_of(gpus, [&](const DeviceShare& b) { return b.gpu == gpu_ && !b.lost; })) return gpu_;
  const auto first = std::ranges::find_if(gpus, [](const DeviceShare& b) { return !b.lost; });
  return first == gpus.end() ? std::string() : first->gpu;
}

RepeatCost Confirmation::so_far(const std::vector<ConfigurationIndex>& candidates) const {
  RepeatCost cost{done_, 0, 0};
  for (const ConfigurationIndex index : candidates) {
    const Measurement& m = standing_.measurement(index);
    const auto energy = m.value("energy"), time = m.value("time");
    const double share = 1.0 / static_cast<double>(candidates.size());
    cost.seconds += share * (m.verify_seconds + m.measure_seconds);
    if (energy && time && *time > 0) cost.joules += share * *energy / *time * m.measure_seconds;
  }
  if (done_ > 0) cost.seconds = (ledger_.now() - began_) / static_cast<double>(done_);
  return cost;
}

RepeatCost Confirmation::expected() const {
  const auto best = standing_.best();
  if (!possible() || !best) return {};
  std::size_t near = 0;
  for (const ConfigurationIndex index : standing_.order())
    near += !standing_.is_guess(index) && near_best(index, *best);
  RepeatCost cost = so_far({*best});
  cost.repeats = kConfirmationRounds * (1 + std::clamp(near, kExpectedCandidates, kNoisyCandidates));
  return cost;
}

/// Whether one of them has not been repeated yet in this run.
bool Confirmation::are_new(const std::vector<ConfigurationIndex>& candidates) const {
  return std::ranges::any_of(candidates, [&](ConfigurationIndex index) { return !rounds_.contains(index); });
}

int Confirmation::fit(std::vector<ConfigurationIndex>& candidates, int wanted) {
  if (!room_) return wanted;
  const std::size_t room = room_(so_far(candidates));
  const bool begins = are_new(candidates);
  if (begins && room < kFewestRounds * candidates.size()) {
    // The default is the second of them unless it is confirmed already. Without it the gain is a search's value, which
    // is better than to compare nothing.
    const bool beside = beside_ && candidates.size() > kFewestCandidates && candidates[1] == *beside_;
    if (beside && room < kFewestRounds * (kFewestCandidates + 1)) candidates.erase(candidates.begin() + 1);
    candidates.resize(std::min(candidates.size(), std::max(kFewestCandidates, room / kFewestRounds)));
  }
  const int rounds = static_cast<int>(std::min<std::size_t>(wanted, room / candidates.size()));
  cut_short_ = cut_short_ || rounds < wanted;
  return rounds < (begins ? kFewestRounds : 1) ? 0 : rounds;
}

bool Confirmation::confirm(std::vector<ConfigurationIndex> candidates, int rounds) {
  if (const std::string gpu = choose_device(); gpu != gpu_) {
    rounds_.clear();
    gpu_ = gpu;
  }
  // Results confirmed on another GPU are not comparable with these: confirm them again.
  for (const ConfigurationIndex index : standing_.order()) {
    const bool elsewhere = is_confirmed(index) && ledger_.find(index)->gpu != gpu_;
    if (elsewhere && std::ranges::find(candidates, index) == candidates.end()) candidates.push_back(index);
  }
  const int rounds_now = fit(candidates, rounds);
  if (rounds_now == 0) return false;
  const std::size_t all = candidates.size() * static_cast<std::size_t>(rounds_now);
  std::size_t before = all;
  const auto report = [&](std::size_t left) {
    done_ += before - left;
    before = left;
    if (report_time_left_)
      report_time_left_(so_far(candidates).seconds * static_cast<double>(left + expected_further_));
  };
  ledger_.set_phase("confirming");
  report(all);
  for (const ConfigurationIndex index : candidates)
    if (!is_confirmed(index)) searched_.try_emplace(index, standing_.judged(index));
  // Where repeats take longer than expected, the first candidates are compared all the same.
  const auto another = [&, must = are_new(candidates) ? kFewestRounds - 1 : 0]() mutable {
    const std::size_t wanted = candidates.size(), room = room_ ? room_(so_far(candidates)) : wanted;
    cut_short_ = cut_short_ || room < wanted;
    return must-- > 0 ? std::max(room, kExpectedCandidates) : room < wanted ? 0 : wanted;
  };
  ConfirmationSource source(candidates, rounds_now, gpu_, next_round_, report, another);
  if (!ledger_.drive(source).empty()) return false;
  if (source.gpus().size() > 1 && lost_gpus_++ < kLostGpus) return confirm(std::move(candidates), rounds);
  next_round_ += rounds_now;
  for (const ConfirmationSource::Candidate& candidate : source.candidates()) {
    std::vector<ConfirmationRound>& rounds = rounds_[candidate.index];
    rounds.insert(rounds.end(), candidate.rounds.begin(), candidate.rounds.end());
    if (rounds.size() < kFewestRounds) rounds_.erase(candidate.index);
  }
  for (auto& [index, mean] : means()) {
    // What worked before and could not be measured again is not confirmed; only a wrong result is evidence against it.
    if (!usable(mean.status) && mean.status != Status::wrong_result) {
      if (unconfirmable_.insert(index).second) ledger_.warn(index, "it could not be confirmed: " + mean.message);
      standing_.see(index);
      continue;
    }
    ledger_.confirm(index, std::move(mean), static_cast<int>(rounds_.at(index).size()), objective_.spec(), gpu_);
    standing_.see(index);
  }
  standing_.recompute_outcomes();
  return true;
}

/// Brings the values that only an earlier run confirmed, perhaps under another load, to the load of this confirmation:
/// they change by the mean factor by which those changed that both confirmed.
void Confirmation::align_earlier() {
  std::map<std::string, std::vector<double>> changes;  // logarithms
  std::map<std::string, double> variances;             // of their sums
  for (const auto& [index, before] : earlier_) {
    if (!rounds_.contains(index) || before.gpu != gpu_) continue;
    for (const std::string& quantity : DeviceFactors::compared()) {
      const Measurement& now = standing_.measurement(index);
      const auto was = before.measurement.value(quantity), is = now.value(quantity);
      if (!is_confirmed(index) || !was || !is || *was <= 0 || *is <= 0) continue;
      changes[quantity].push_back(std::log(*is / *was));
      variances[quantity] += std::pow(now.standard_error(quantity) / *is, 2) +
                             std::pow(before.measurement.standard_error(quantity) / *was, 2);
    }
  }
  for (auto& [index, before] : earlier_) {
    if (rounds_.contains(index) || before.gpu != gpu_) continue;
    Measurement aligned = before.measurement;
    for (const auto& [quantity, logarithms] : changes) {
      if (!aligned.value(quantity)) continue;
      const double count = static_cast<double>(logarithms.size());
      const double factor = std::exp(std::accumulate(logarithms.begin(), logarithms.end(), 0.0) / count);
      Quantity& q = aligned.quantities.at(quantity);
      q.standard_error = factor * std::hypot(q.standard_error, q.value * std::sqrt(variances[quantity]) / count);
      q.value *= factor;
      q.provenance = Provenance::modelled;
    }
    if (changes.empty()) return;
    if (std::ranges::find(aligned.warnings, kAligned) == aligned.warnings.end()) aligned.warnings.push_back(kAligned);
    ledger_.confirm(index, std::move(aligned), before.rounds, objective_.spec(), gpu_);
    standing_.see(index);
  }
  standing_.recompute_outcomes();
}

bool Confirmation::has_confirmed_best() const {
  const std::vector<ConfigurationIndex> ranking = standing_.ranking();
  return !ranking.empty() && is_confirmed(ranking.front());
}

bool Confirmation::possible() const {
  return ledger_.evaluator().provenance() == Provenance::measured && objective_.kind() != Objective::Kind::pareto &&
         !ledger_.interrupted();
}

void Confirmation::run(bool fresh, Room room) {
  room_ = std::move(room);
  if (!possible()) return;
  // What was confirmed once, and has no new rival, is not measured again by the same command.
  if (!fresh && has_confirmed_best()) return;
  const std::vector<ConfigurationIndex> ranking = standing_.ranking();
  if (rounds_.empty())
    for (const ConfigurationIndex index : standing_.order())
      if (is_confirmed(index)) earlier_.try_emplace(index, *ledger_.find(index));
  const double before = began_ = ledger_.now(), waited = ledger_.waited();
  done_ = 0;
  const bool races = objective_.kind() == Objective::Kind::single;
  for (int batch = 0; batch < kConfirmationBatches || !outdated(standing_.ranking()).empty(); ++batch) {
    const std::vector<ConfigurationIndex> list = candidates();
    if (list.empty()) break;
    // Those whose intervals reach the best one's are likely to be measured again, many of them by each batch.
    const auto near = static_cast<std::size_t>(
        std::ranges::count_if(list, [&](ConfigurationIndex index) { return near_best(index, ranking.front()); }));
    const int again = near < 2 ? 0 : near < kNoisyCandidates ? 1 : std::max(1, kConfirmationBatches - batch);
    expected_further_ = std::max(std::min(list.size(), kExpectedCandidates), near) + near * kConfirmationRounds * again;
    if (!confirm(list, races ? kFewestRounds : kConfirmationRounds)) break;
    align_earlier();
    if (races) race(false);
  }
  if (!rounds_.empty() && races) race(true);
  if (const auto last = standings()) ledger_.conclude(last->indices.front(), last->chances);
  seconds_ += ledger_.now() - before - (ledger_.waited() - waited);
}

/// Whether their intervals leave it open which is better.
bool Confirmation::near_best(ConfigurationIndex index, ConfigurationIndex best) const {
  const Outcome &a = standing_.outcome(index), &b = standing_.outcome(best);
  if (objective_.kind() != Objective::Kind::single || !a.ok || !b.ok) return false;
  return a.values.front() - b.values.front() < half_width_of_difference(a, b);
}

std::map<ConfigurationIndex, Measurement> Confirmation::means() const {
  std::map<ConfigurationIndex, Measurement> means;
  for (const auto& [index, rounds] : rounds_) {
    std::vector<Measurement> measured;
    for (const ConfirmationRound& round : rounds) measured.push_back(round.measurement);
    means.emplace(index, combine(measured));
  }
  for (const std::string& quantity : DeviceFactors::compared()) {
    std::vector<std::vector<RoundValue>> values;
    std::vector<Measurement*> of;
    for (auto& [index, mean] : means) {
      std::vector<RoundValue> list;
      for (const ConfirmationRound& round : rounds_.at(index)) {
        const auto value = usable(round.measurement.status) ? round.measurement.value(quantity) : std::nullopt;
        if (value && *value > 0) list.push_back({round.number, *value, 0});
      }
      if (list.empty() || !usable(mean.status)) continue;
      values.push_back(std::move(list));
      of.push_back(&mean);
    }
    const std::vector<double> factors = repeat_bias_factors(values);
    for (std::size_t i = 0; i < of.size(); ++i) {
      Quantity& q = of[i]->quantities.at(quantity);
      q.value /= factors[i];
      q.standard_error /= factors[i];
    }
  }
  return means;
}

std::optional<Confirmation::Standings> Confirmation::standings() {
  Standings found;
  std::vector<std::vector<RoundValue>> values;
  const double sign = objective_.direction() == Direction::maximise ? -1 : 1;
  Objective judge = objective_;
  for (const ConfigurationIndex index : standing_.ranking()) {
    const auto rounds = rounds_.find(index);
    if (rounds == rounds_.end() || !is_confirmed(index)) continue;
    // What the objective makes of the mean (a broken condition, a level) holds for its rounds.
    const Outcome outcome = objective_.outcome(standing_.measurement(index));
    const auto mean = objective_.value(standing_.measurement(index));
    if (!outcome.ok || !mean) continue;
    const bool folded = objective_.kind() != Objective::Kind::single && *mean != 0;
    const double scale = folded ? outcome.values.front() / *mean : sign;
    std::vector<RoundValue> list;
    for (const ConfirmationRound& round : rounds->second) {
      const auto value = objective_.value(round.measurement);
      if (!value) continue;
      const Outcome own = judge.outcome(round.measurement);
      list.push_back({round.number, scale * *value, std::abs(scale) * error_of(own).standard_error});
    }
    if (list.empty()) continue;
    found.indices.push_back(index);
    values.push_back(std::move(list));
  }
  auto chances = choice_probabilities(values);
  if (!chances) return std::nullopt;
  found.chances = std::move(*chances);
  return found;
}

/// Repeats the candidates that may still be the best, until the leader has kConfirmationRounds, as the second and the
/// default have, and, `until_certain`, the expected loss of the choice is negligible or the confirmation has taken
/// longer than the measurements that it confirms.
void Confirmation::race(bool until_certain) {
  double searched = 0;
  for (const ConfigurationIndex index : standing_.order()) {
    const auto before = searched_.find(index);
    const Measurement& m = before == searched_.end() ? ledger_.find(index)->measurement : before->second;
    searched += m.verify_seconds + m.measure_seconds;
  }
  const auto few = [&](ConfigurationIndex index) { return rounds_.at(index).size() < kConfirmationRounds; };
  for (int turn = 0; turn < kRaces; ++turn) {
    const auto now = standings();
    if (!now) return;
    const ConfigurationIndex leader = now->indices.front();
    const bool open = now->chances.expected_loss >= kAcceptedLoss;
    const bool long_enough = ledger_.now() - began_ > std::max(kShortConfirmation, searched);
    if (!few(leader) && (!until_certain || !open || long_enough)) return;
    std::vector<ConfigurationIndex> rivals{leader};
    for (std::size_t i = 1; i < now->indices.size(); ++i) {
      const ConfigurationIndex index = now->indices[i];
      if ((now->chances.of[i] > kChance && (open || few(index))) || ((i == 1 || index == beside_) && few(index)))
        rivals.push_back(index);
    }
    // The expected loss falls as the number of rounds grows.
    const auto rounds = static_cast<double>(rounds_.at(leader).size());
    const double more = rounds * (now->chances.expected_loss / kAcceptedLoss - 1) - 1;
    if (until_certain)
      expected_further_ =
          static_cast<std::size_t>(std::clamp(std::ceil(more), 0.0, 1.0 * (kRaces - turn - 1))) * rivals.size();
    else
      expected_further_ -= std::min(expected_further_, rivals.size());
    if (rivals.size() < 2 || !confirm(rivals, 1)) return;
  }
}

Confidence Confirmation::confidence() {
  Confidence out;
  const std::vector<ConfigurationIndex> ranking = standing_.ranking();
  // What was confirmed for another objective had other rivals.
  if (objective_.kind() == Objective::Kind::pareto || ranking.empty() || !is_confirmed(ranking.front())) return out;
  const ConfigurationResult& winner = *ledger_.find(ranking.front());
  out.confirmation_repeats = winner.rounds;
  out.search_repeats = stored_repeats();
  if (!winner.certainty) return out;
  out.probability_best = winner.certainty->probability_best;
  if (objective_.kind() == Objective::Kind::single) out.expected_loss = winner.certainty->expected_loss;
  return out;
}

std::vector<double> repeat_bias_factors(const std::vector<std::vector<RoundValue>>& candidates) {
  constexpr int kSweeps = 100;
  constexpr double kLeast = 1e-20;
  struct Round {
    double effect = 0, sum = 0, count = 0;
  };
  std::map<int, Round> rounds;
  std::vector<double> means(candidates.size(), 0.0), factors(candidates.size(), 1.0);
  double cells = 0;
  for (const auto& values : candidates)
    for (const RoundValue& v : values) ++rounds[v.round].count, ++cells;
  const double count = static_cast<double>(rounds.size());
  if (cells == count * static_cast<double>(candidates.size())) return factors;
  double noise = 1, drift = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (auto& [number, round] : rounds) round.sum = 0;
    double squares = 0, drifts = 0, centre = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      means[i] = 0;
      for (const RoundValue& v : candidates[i])
        means[i] += (std::log(v.value) - rounds[v.round].effect) / static_cast<double>(candidates[i].size());
      for (const RoundValue& v : candidates[i]) rounds[v.round].sum += std::log(v.value) - means[i];
    }
    for (auto& [number, round] : rounds) {
      round.effect = round.sum / (round.count + noise / drift);
      centre += round.effect / count;
    }
    for (auto& [number, round] : rounds) {
      round.effect -= centre;
      drifts += round.effect * round.effect + noise / (round.count + noise / drift);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i)
      for (const RoundValue& v : candidates[i])
        squares += std::pow(std::log(v.value) - means[i] - rounds[v.round].effect, 2);
    noise = std::max(kLeast, squares / std::max(1.0, cells - static_cast<double>(candidates.size()) - count + 1));
    drift = std::max(kLeast, drifts / count);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    double effect = 0;
    for (const RoundValue& v : candidates[i])
      effect += rounds[v.round].effect / static_cast<double>(candidates[i].size());
    factors[i] = std::exp(effect);
  }
  return factors;
}

}  // namespace ergotune
