// Bayesian optimisation with a Gaussian process over the logarithm of the values: expected improvement over
// every configuration of the space, or over a large sample of it.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ergotune/base/statistics.hpp"
#include "search/acquisition.hpp"
#include "search/builtin.hpp"
#include "search/candidates.hpp"
#include "search/gaussian_process.hpp"
#include "search/moves.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class Bayesian : public StrategyBase {
 public:
  explicit Bayesian(const StrategyContext& context)
      : StrategyBase("bayesian", context),
        model_(space()),
        candidates_(space(), static_cast<std::size_t>(integer("candidates"))),
        prior_(space(), context.prior),
        moves_(space()) {}

 protected:
  bool concurrent() const override { return started_; }

  void learn(ConfigurationIndex index, double value, const Outcome&) override {
    if (observations_.size() >= model_limit() && places_.count(index) == 0) return;
    place_of(index).value = value;
    place_of(index).pending = false;
    if (value <= best_value()) improved_ = true;
  }

  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      if (!told() && queued() == 0) {
        propose_all(space().low_discrepancy(initial_size(), random()));
        return;
      }
    }
    if (outstanding() > 0 && told() < initial_size() / 2) return;  // nothing to learn from yet
    if (told() == 0 || !std::isfinite(best_value()) || observations_.size() >= model_limit()) {
      exploit(wanted);
      return;
    }
    update();
    for (std::size_t i = 0; i < wanted; ++i) {
      if (!propose_best()) break;
      if (i + 1 < wanted) update();
    }
  }

 private:
  struct Observation {
    ConfigurationIndex index = 0;
    double value = 0;     ///< infinity for a failure
    double believed = 0;  ///< while it is pending: the model's own mean, in its units
    bool pending = false;
  };

  /// Observations times candidates that take some milliseconds a step.
  static constexpr double kAffordable = 4e6;

  std::size_t initial_size() const {
    auto size = static_cast<std::size_t>(integer("initial"));
    if (context().budget > 0)
      size = std::min<std::size_t>(size, std::max<std::uint64_t>(3, context().budget / 4));
    return prior_.empty() ? size : std::max<std::size_t>(2, size / 3);
  }
  std::size_t model_limit() const { return static_cast<std::size_t>(integer("model_limit")); }

  Observation& place_of(ConfigurationIndex index) {
    const auto [it, is_new] = places_.try_emplace(index, observations_.size());
    if (is_new) {
      observations_.push_back({index, 0, 0, true});
      model_.observe(index);
    }
    return observations_[it->second];
  }

  /// The values as the model sees them: logarithms where all are positive, high ones held at a ceiling,
  /// failures at the worst.
  std::vector<double> model_values() {
    std::vector<double> ok;
    for (const auto& o : observations_)
      if (!o.pending && std::isfinite(o.value)) ok.push_back(o.value);
    logarithmic_ = *std::min_element(ok.begin(), ok.end()) > 0;
    for (double& v : ok) v = transformed(v);
    const double ceiling = quantile(ok, real("ceiling"));
    // beyond the worst success, or a lone success would look no better than the failures around it
    const double best = *std::min_element(ok.begin(), ok.end());
    const double failed = ceiling + std::max(0.2, real("failure") * (ceiling - best));
    std::vector<double> values, at;
    for (const auto& o : observations_) {
      if (o.pending)
        values.push_back(o.believed);
      else
        values.push_back(std::isfinite(o.value) ? std::min(transformed(o.value), ceiling) : failed);
      at.push_back(prior_.mean(o.index));
    }
    prior_weight_ = prior_.weight(at, values);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= prior_weight_ * at[i];
    return values;
  }
  double transformed(double value) const { return logarithmic_ ? std::log(value) : value; }

  void update() {
    model_.set_values(model_values());
    const std::size_t n = observations_.size();
    const bool fit_due = n >= next_fit_;
    if (fit_due) {
      model_.fit();
      next_fit_ = n + 1 + n / 8;
    }
    // the posterior costs (observations x candidates) per step: as the one grows, the other shrinks
    const std::size_t affordable = std::clamp<std::size_t>(
        static_cast<std::size_t>(kAffordable / static_cast<double>(n)), 1000, candidates_.limit());
    const bool stale = !candidates_.whole() && (fit_due || improved_);
    if (model_.pool().empty() || stale || model_.pool().size() > 2 * affordable) {
      model_.set_pool(candidates_.draw(memory(), best_known(5), random(), affordable));
      improved_ = false;
    } else if (fit_due) {
      model_.refit_pool();
    }
    model_.predict(mean_, deviation_);
  }

  std::vector<ConfigurationIndex> best_known(std::size_t count) const {
    std::vector<std::pair<double, ConfigurationIndex>> list;
    for (const auto& o : observations_)
      if (!o.pending && std::isfinite(o.value)) list.emplace_back(o.value, o.index);
    count = std::min(count, list.size());
    std::partial_sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count), list.end());
    std::vector<ConfigurationIndex> best;
    for (std::size_t i = 0; i < count; ++i) best.push_back(list[i].second);
    return best;
  }

  bool propose_best() {
    const double target = transformed(best_value());
    const auto& pool = model_.pool();
    double top = -1;
    std::size_t pick = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (!memory().fresh(pool[i])) continue;
      const double mean = mean_[i] + (prior_.empty() ? 0.0 : prior_weight_ * prior_.mean(pool[i]));
      const double gain = expected_improvement(target - mean, deviation_[i]);
      if (gain > top) {
        top = gain;
        pick = i;
      }
    }
    if (top < 0) {
      exploit(1);
      return queued() > 0;
    }
    Observation& place = place_of(pool[pick]);
    place.believed = mean_[pick] + prior_weight_ * prior_.mean(pool[pick]);
    return propose(pool[pick]);
  }

  /// Without a model (nothing succeeded yet, or too much is known for one): around the best.
  void exploit(std::size_t wanted) {
    if (!std::isfinite(best_value())) return;
    for (std::size_t attempt = 0; attempt < 50 && queued() < wanted; ++attempt)
      propose(moves_.perturbed(best(), 1 + random().below(2), random()));
  }

  GaussianProcess model_;
  Candidates candidates_;
  PriorMean prior_;
  Moves moves_;
  std::vector<Observation> observations_;
  std::unordered_map<ConfigurationIndex, std::size_t> places_;
  std::vector<float> mean_, deviation_;
  std::size_t next_fit_ = 0;
  double prior_weight_ = 0;
  bool started_ = false, logarithmic_ = true, improved_ = false;
};

}  // namespace

void add_bayesian(StrategyList& list) {
  list.push_back(describe_strategy<Bayesian>(
      "bayesian", "expected improvement of a Gaussian process",
      {{"initial", "size of the first, spread design", 3, {2, 3, 4, 6, 10}},
       {"failure", "how far above the worst a failure counts, in spans of the values", 0.3, {0.0, 0.3, 0.6}},
       {"ceiling", "quantile above which values count alike", 0.7, {0.5, 0.7, 0.85, 1.0}},
       {"candidates", "configurations the model is asked about at most", 20000, {}},
       {"model_limit", "observations after which it searches around the best instead", 1500, {}}}));
}

}  // namespace ergotune::search
