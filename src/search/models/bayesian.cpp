// Bayesian optimisation with a Gaussian process over the logarithm of the values: expected improvement over
// every configuration of the space, or over a large sample of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/statistics.hpp"
#include "search/heuristics/moves.hpp"
#include "search/inactive_parameters.hpp"
#include "search/models/acquisition.hpp"
#include "search/models/feasibility.hpp"
#include "search/models/gaussian_process.hpp"
#include "search/models/overhead_budget.hpp"
#include "search/models/prior_features.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class Bayesian : public StrategyBase {
 public:
  explicit Bayesian(const StrategyContext& context)
      : StrategyBase("bayesian", context),
        model_(space()),
        twins_(space()),
        candidates_(space(), static_cast<std::size_t>(integer("candidates"))),
        prior_(space(), context.priors),
        moves_(space()),
        overhead_(context.clock),
        feasibility_(space()) {
    prior_.teach(model_);
  }

  std::string explanation() const override {
    if (quick_ == 0) return {};
    return fmt::format(
        "an evaluation is too short for a model's step each: {} of {} configurations are the model's choice, "
        "the others what it ranked next, children of the best and some at random",
        modelled_, modelled_ + quick_);
  }
  std::optional<double> prospect() const override { return prospect_; }

 protected:
  bool concurrent() const override { return started_; }

  void learn(ConfigurationIndex index, double value, const Outcome& outcome) override {
    if (value <= best_value()) {
      improved_ = true;
      last_improvement_ = tell_count();
    }
    if (tell_count() > paid_) overhead_.evaluated(outcome.seconds, still() >= patience());
    paid_ = tell_count();
    keep_best(index, value);
    if (observations_.size() >= model_limit() && places_.count(index) == 0) return;
    twins_.observe(index, std::isfinite(value), value);
    feasibility_.observe(index, std::isfinite(value), outcome.block_need);
    if (const auto known = places_.find(index); known != places_.end() && std::isfinite(value)) {
      observations_[known->second].value = value;
      observations_[known->second].pending = false;
    } else if (known != places_.end()) {
      withdraw(known->second);
    } else if (std::isfinite(value)) {
      waiting_.emplace_back(value, index);
    }
  }

  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      if (tell_count() <= 1 && queued() == 0) {  // the default configuration alone is not an initial design
        propose_all(space().low_discrepancy(std::max(initial_size(), wanted), random()));
        return;
      }
    }
    if (outstanding() > 0 && tell_count() < initial_size() / 2) return;  // nothing to learn from yet
    if (tell_count() == 0 || !std::isfinite(best_value()) || observations_.size() >= model_limit()) {
      exploit(wanted);
      return;
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      const bool thinks = model_.pool().empty() || overhead_.affordable(OverheadBudget::Account::steps);
      if (thinks) update();
      if (!(thinks ? step() : quick_step())) break;
    }
  }

 private:
  struct Observation {
    ConfigurationIndex index = 0;
    double value = 0;
    double believed = 0;  ///< prediction used while it is pending: the model's mean, but no improvement; in the model's
                          ///< units
    bool pending = false;
  };

  /// Size of the initial design if the candidates are a sample of the space.
  static constexpr std::size_t kInitialOfLarge = 10;
  /// Number of operations for drawing and encoding a candidate.
  static constexpr std::size_t kDrawn = 1000;
  /// Observations times candidates that take some milliseconds per step.
  static constexpr double kAffordable = 4e6;
  /// Smallest relevant improvement of the logarithm if the candidates are a sample.
  static constexpr double kWorthwhile = 0.0005;
  /// Expected improvement, of the logarithm or as a share of the best, that is none.
  static constexpr double kNegligible = 1e-6;
  /// Number of best candidates among which the first is chosen that differs from every measured one in an active
  /// parameter.
  static constexpr std::size_t kTopCandidates = 300;
  /// Outcomes that the model includes in a step if it cannot afford all.
  static constexpr std::size_t kObservationsPerStep = 8;
  /// Length of the ranking around which candidates are drawn, and of the one that steps without the model use.
  static constexpr std::size_t kPromising = 6, kShortList = 32;
  /// Number of best configurations that are kept sorted.
  static constexpr std::size_t kKept = 20;
  std::size_t initial_size() const {
    auto size = static_cast<std::size_t>(integer("initial"));
    // where it sees a sample only, a model of three points leads nowhere for long
    if (!candidates_.whole()) size = std::max(size, kInitialOfLarge);
    if (context().budget > 0) size = std::min<std::size_t>(size, std::max<std::uint64_t>(3, context().budget / 4));
    return prior_.empty() ? size : std::max<std::size_t>(2, size / 3);
  }
  std::size_t model_limit() const { return static_cast<std::size_t>(integer("model_limit")); }

  Observation& place_of(ConfigurationIndex index) {
    const auto [it, is_new] = places_.try_emplace(index, observations_.size());
    if (is_new) {
      observations_.push_back({index, 0, 0, true});
      if (!prior_.empty()) prior_.expect({index});
      model_.observe(index);
    }
    return observations_[it->second];
  }

  /// Removes a requested configuration that has failed from the model of the values.
  void withdraw(std::size_t place) {
    const std::vector<Observation> later(observations_.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                                         observations_.end());
    places_.erase(observations_[place].index);
    observations_.resize(place);
    model_.keep_first(place);
    for (const Observation& o : later) {
      places_[o.index] = observations_.size();
      observations_.push_back(o);
      model_.observe(o.index);
    }
  }

  /// The values as the model sees them: logarithms where all are positive, high ones held at a ceiling in most steps.
  std::vector<double> model_values() {
    std::vector<double> ok;
    for (const auto& o : observations_)
      if (!o.pending) ok.push_back(o.value);
    logarithmic_ = *std::min_element(ok.begin(), ok.end()) > 0;
    for (double& v : ok) v = transformed(v);
    const double ceiling = quantile(ok, noiseless_ ? 1.0 : real("ceiling"));
    std::vector<double> values;
    for (const Observation& o : observations_)
      values.push_back(o.pending ? o.believed : std::min(transformed(o.value), ceiling));
    return values;
  }
  double transformed(double value) const { return logarithmic_ ? std::log(value) : value; }

  /// Outcomes that came since the last step become observations: all of them, or where that would cost more than they
  /// are worth the best and some of the others.
  void take_in() {
    const double each = static_cast<double>(observations_.size() * model_.pool().size());
    if (overhead_.limited() && waiting_.size() > kObservationsPerStep && each > overhead_.operations() / 2) {
      std::sort(waiting_.begin(), waiting_.end());
      for (std::size_t i = kObservationsPerStep / 2; i < kObservationsPerStep; ++i)
        std::swap(waiting_[i], waiting_[i + random().below(waiting_.size() - i)]);
      waiting_.resize(kObservationsPerStep);
    }
    for (const auto& [value, index] : waiting_) {
      if (observations_.size() >= model_limit()) break;
      Observation& place = place_of(index);
      place.value = value;
      place.pending = false;
    }
    waiting_.clear();
  }

  void update() {
    const double before = static_cast<double>(observations_.size() * model_.pool().size());
    overhead_.charge(OverheadBudget::Account::steps, before * static_cast<double>(waiting_.size()), [&] { take_in(); });
    noiseless_ = modelled_ % 2 == 1;
    model_.set_values(model_values());
    const std::size_t n = observations_.size();
    const bool rare = model_.pool().empty() || overhead_.affordable(OverheadBudget::Account::fits);
    const bool fit_due = n >= next_fit_ && rare;
    if (fit_due) {
      overhead_.charge(OverheadBudget::Account::fits, model_.operations_of_fit(), [&] { model_.fit(); });
      next_fit_ = n + 1 + n / 8;
    }
    // the posterior costs (observations x candidates) per step: as the one grows, the other shrinks
    const double affordable_steps =
        std::min(overhead_.operations() / 2, candidates_.whole() ? kAffordable : kAffordable / 2);
    const std::size_t affordable =
        std::clamp<std::size_t>(static_cast<std::size_t>(affordable_steps / static_cast<double>(n)), 1000,
                                candidates_.whole() ? candidates_.limit() : 8000);
    const bool stale = !candidates_.whole() && (fit_due || (improved_ && rare));
    const double rebuilt = static_cast<double>(affordable * (n * n / 2 + kDrawn));
    if (model_.pool().empty() || stale || (rare && model_.pool().size() > 2 * affordable)) {
      overhead_.charge(OverheadBudget::Account::fits, rebuilt, [&] {
        std::vector<ConfigurationIndex> pool =
            candidates_.draw(memory(), best_known(10), promising_, random(), affordable);
        prior_.expect(pool);
        feasibility_.set_pool(pool);
        model_.set_pool(std::move(pool));
      });
      improved_ = false;
    } else if (fit_due) {
      overhead_.charge(OverheadBudget::Account::fits, rebuilt, [&] { model_.refit_pool(); });
    }
    overhead_.charge(OverheadBudget::Account::steps, 2 * static_cast<double>(n * model_.pool().size()), [&] {
      model_.predict(mean_, deviation_);
      feasibility_.predict(log_feasible_);
    });
    target_ = transformed(best_value());
    if (!noiseless_) return;
    target_ = model_.least_mean();
    const double noise = model_.noise_deviation();
    for (float& deviation : deviation_)
      deviation = static_cast<float>(std::sqrt(std::max(deviation * deviation - noise * noise, 1e-12)));
  }

  void keep_best(ConfigurationIndex index, double value) {
    std::erase_if(best_, [&](const auto& kept) { return kept.second == index; });
    if (!std::isfinite(value)) return;
    const std::pair<double, ConfigurationIndex> here{value, index};
    best_.insert(std::upper_bound(best_.begin(), best_.end(), here), here);
    if (best_.size() > kKept) best_.pop_back();
  }

  std::vector<ConfigurationIndex> best_known(std::size_t count) const {
    std::vector<ConfigurationIndex> best;
    for (std::size_t i = 0; i < std::min(count, best_.size()); ++i) best.push_back(best_[i].second);
    return best;
  }

  /// Evaluations without improvement after which the model is no longer used exclusively: more if it sees all
  /// configurations.
  std::uint64_t patience() const { return candidates_.whole() ? 60 + tell_count() / 2 : 20 + tell_count() / 8; }

  /// Proposes the model's choice; without improvement for long, alternates with neighbours of the best and with
  /// evolution.
  bool step() {
    ++modelled_;
    if (still() >= patience() && still() % 3 == 1 && polish()) return true;
    if (still() >= patience() && still() % 3 == 2 && evolve()) return true;
    return propose_best();
  }
  std::uint64_t still() const { return tell_count() + outstanding() - last_improvement_; }

  /// A step without the model, which takes microseconds: its last ranking, children of the best, and occasionally a
  /// random configuration.
  bool quick_step() {
    const std::uint64_t turn = quick_++;
    if (turn % 8 == 7) {
      if (const auto any = memory().random_fresh(random())) return propose(*any);
    }
    while (turn % 2 == 0 && listed_ < shortlist_.size())
      if (propose(shortlist_[listed_++])) return true;
    if (evolve()) return true;
    exploit(1);
    return queued() > 0;
  }

  /// Gathers the gains of `only`, or of all candidates: at least those of the kTopCandidates best, in no order.
  void rank(double target, const std::unordered_set<ConfigurationIndex>* only) {
    const auto& pool = model_.pool();
    // Where all improvements are negligible, the likelier to work comes first: else configurations that fail alike,
    // about whose values the model learns nothing, would be left as the only promising ones.
    const bool may_fail = std::ranges::any_of(log_feasible_, [](float p) { return p < 0; });
    const double negligible = may_fail ? kNegligible * (logarithmic_ ? 1 : std::abs(best_value())) : 0;
    const auto gain = [&](std::size_t i) {
      const double log_improvement = log_expected_improvement(target - mean_[i], deviation_[i]);
      return (may_fail ? std::log(std::exp(log_improvement) + negligible) : log_improvement) + log_feasible_[i];
    };
    double least = -1e300;  // standard deviations
    if (only == nullptr) {
      // the best will be no worse than those that were ahead the last time are now
      gains_.clear();
      for (const std::size_t i : ahead_)
        if (i < pool.size() && memory().fresh(pool[i])) gains_.emplace_back(gain(i), i);
      if (gains_.size() >= kTopCandidates) {
        std::nth_element(gains_.begin(), gains_.begin() + (kTopCandidates - 1), gains_.end(), std::greater<>());
        const double log_wanted = gains_[kTopCandidates - 1].first, wanted = std::exp(log_wanted) - negligible;
        if (!may_fail || wanted > 0)
          least = least_deviations(may_fail ? std::log(wanted) : log_wanted,
                                   *std::max_element(deviation_.begin(), deviation_.end()));
      }
    }
    gains_.clear();
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (target - mean_[i] < least * deviation_[i]) continue;
      if (!memory().fresh(pool[i]) || (only != nullptr && only->count(pool[i]) == 0)) continue;
      gains_.emplace_back(gain(i), i);
    }
  }

  /// The likeliest improvement among `only`, or among all candidates.
  bool propose_best(const std::unordered_set<ConfigurationIndex>* only = nullptr) {
    const double target = target_ - (logarithmic_ && !candidates_.whole() ? kWorthwhile : 0.0);
    const auto& pool = model_.pool();
    rank(target, only);
    if (gains_.empty()) {
      if (only == nullptr) exploit(1);
      return queued() > 0;
    }
    const auto first = static_cast<std::ptrdiff_t>(std::min<std::size_t>(kTopCandidates, gains_.size()));
    std::partial_sort(gains_.begin(), gains_.begin() + first, gains_.end(), [](auto& a, auto& b) {
      return a.first > b.first || (a.first == b.first && a.second < b.second);
    });
    if (only == nullptr) {
      ahead_.clear();
      for (std::size_t i = 0; i < std::min(2 * kTopCandidates, gains_.size()); ++i) ahead_.push_back(gains_[i].second);
    }
    std::size_t pick = gains_.front().second;
    bool found = false;
    promising_.clear();
    shortlist_.clear();
    listed_ = 0;
    const std::size_t kept = overhead_.limited() ? kPromising + kShortList : kPromising;
    for (std::ptrdiff_t i = 0; i < first && promising_.size() + shortlist_.size() < kept; ++i) {
      const std::size_t candidate = gains_[static_cast<std::size_t>(i)].second;
      if (only == nullptr && twins_.twin(pool[candidate])) continue;
      if (!found) pick = candidate;
      if (found) (promising_.size() < kPromising ? promising_ : shortlist_).push_back(pool[candidate]);
      found = true;
    }
    if (only == nullptr && !noiseless_) {
      const double worthwhile = logarithmic_ ? 0.01 : 0.01 * std::abs(best_value());
      prospect_ = normal_cdf((transformed(best_value()) - worthwhile - mean_[pick]) /
                             std::max(1e-12, static_cast<double>(deviation_[pick])));
    }
    Observation& place = place_of(pool[pick]);
    // if pending configurations were assumed to improve on the best, the rest of a batch would cluster around them
    place.believed = std::max<double>(mean_[pick], transformed(best_value()));
    return propose(pool[pick]);
  }

  /// Proposes a neighbour of the best, or of the next best that has a fresh one: in case the model is wrong there, or a
  /// parameter only seems inactive.
  bool polish() {
    std::vector<ConfigurationIndex> near;
    for (const ConfigurationIndex centre : best_known(3)) {
      space().neighbours(centre, Neighbourhood::hamming, near);
      const std::unordered_set<ConfigurationIndex> set(near.begin(), near.end());
      if (propose_best(&set)) return true;
    }
    return false;
  }

  /// A child of two of the best, as a genetic algorithm has it.
  bool evolve() {
    const auto parents = best_known(20);
    if (parents.size() < 2) return false;
    std::vector<std::uint32_t> child(space().dimensions()), other(space().dimensions());
    for (int attempt = 0; attempt < 20; ++attempt) {
      const auto pick = [&] {
        return parents[std::min(random().below(parents.size()), random().below(parents.size()))];
      };
      const ConfigurationIndex from = pick();
      space().values_at(from, child);
      space().values_at(pick(), other);
      for (std::size_t p = 0; p < child.size(); ++p)
        if (random().chance(0.5)) child[p] = other[p];
      ConfigurationIndex index = moves_.towards(from, std::span<const std::uint32_t>(child), random());
      if (random().chance(0.7)) index = moves_.random_neighbour(index, random());
      if (memory().fresh(index) && !twins_.twin(index)) return propose(index);
    }
    return false;
  }

  /// Without a model (nothing succeeded yet, or too much is known for one): around the best.
  void exploit(std::size_t wanted) {
    if (!std::isfinite(best_value())) return;
    for (std::size_t attempt = 0; attempt < 50 && queued() < wanted; ++attempt)
      propose(moves_.perturbed(best(), 1 + random().below(2), random()));
  }

  GaussianProcess model_;
  InactiveParameters twins_;
  Candidates candidates_;
  PriorFeatures prior_;
  Moves moves_;
  OverheadBudget overhead_;
  Feasibility feasibility_;
  std::vector<Observation> observations_;
  std::vector<std::pair<double, ConfigurationIndex>> waiting_, best_;  ///< not taken in yet; the best, in order
  std::unordered_map<ConfigurationIndex, std::size_t> places_;
  std::vector<float> mean_, deviation_, log_feasible_;
  std::vector<std::pair<double, std::size_t>> gains_;
  std::vector<std::size_t> ahead_;  ///< of the last ranking, in the pool
  std::vector<ConfigurationIndex> promising_, shortlist_;
  std::size_t next_fit_ = 0, listed_ = 0;
  std::uint64_t last_improvement_ = 0, modelled_ = 0, quick_ = 0, paid_ = 0;
  std::optional<double> prospect_;
  double target_ = 0;  ///< that a candidate has to be below
  /// Every other step looks for what is better apart from noise: it sees the values without a ceiling, and compares
  /// means with the least mean at an observation. Most of a search is spent in the first basin, whose luckiest value no
  /// other region seems likely to beat.
  bool noiseless_ = false;
  bool started_ = false, logarithmic_ = true, improved_ = false;
};

}  // namespace

void add_bayesian(StrategyList& list) {
  list.push_back(describe_strategy<Bayesian>(
      "bayesian", "expected improvement of a Gaussian process",
      {{"initial", "size of the first, spread design", 3, {2, 3, 4, 6, 10}},
       {"ceiling", "quantile above which values count alike", 0.7, {0.5, 0.7, 0.85, 1.0}},
       {"candidates", "configurations the model is asked about at most", 20000, {}},
       {"model_limit", "observations after which it searches around the best instead", 1500, {}}}));
}

}  // namespace ergotune::search
