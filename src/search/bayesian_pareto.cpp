// Bayesian optimisation for Pareto sets: a Gaussian process per objective. With two objectives the candidate
// with the largest expected hypervolume improvement comes next (Emmerich et al., 2011; exact for independent
// normals); with more, expected improvement of a randomly weighted Chebyshev norm (ParEGO, Knowles 2006).
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ergotune/base/statistics.hpp"
#include "ergotune/search/pareto.hpp"
#include "search/acquisition.hpp"
#include "search/builtin.hpp"
#include "search/candidates.hpp"
#include "search/gaussian_process.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class BayesianPareto : public StrategyBase {
 public:
  explicit BayesianPareto(const StrategyContext& context)
      : StrategyBase("bayesian_pareto", context),
        candidates_(space(), static_cast<std::size_t>(integer("candidates"))) {
    for (std::size_t o = 0; o < std::max<std::size_t>(1, context.objectives); ++o)
      models_.emplace_back(space());
  }

 protected:
  void learn(ConfigurationIndex index, double, const Outcome& outcome) override {
    std::vector<double> values;
    if (outcome.ok && outcome.values.size() == models_.size()) values = outcome.values;
    if (const auto known = std::find(places_.begin(), places_.end(), index); known != places_.end()) {
      outcomes_[static_cast<std::size_t>(known - places_.begin())] = std::move(values);
      return;
    }
    for (auto& model : models_) model.observe(index);
    places_.push_back(index);
    outcomes_.push_back(std::move(values));
  }

  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      propose_all(space().low_discrepancy(static_cast<std::size_t>(integer("initial")), random()));
      if (queued() > 0) return;
    }
    transform();
    if (successes_ < 2) return;
    const std::size_t n = places_.size();
    const bool fit_due = n >= next_fit_;
    if (fit_due) next_fit_ = n + 1 + n / 8;
    const auto affordable = std::max<std::size_t>(800, static_cast<std::size_t>(3e6) / n);
    std::vector<ConfigurationIndex> pool;
    if (models_.front().pool().empty() || (!candidates_.whole() && fit_due) ||
        models_.front().pool().size() > std::max(affordable * 2, candidates_.limit() / 8))
      pool =
          candidates_.draw(memory(), front_places_, {}, random(), std::min(candidates_.limit(), affordable * 2));
    for (std::size_t o = 0; o < models_.size(); ++o) {
      std::vector<double> y;
      for (const auto& v : transformed_) y.push_back(v[o]);
      models_[o].set_values(y);
      if (fit_due) models_[o].fit();
      if (!pool.empty())
        models_[o].set_pool(pool);
      else if (fit_due)
        models_[o].refit_pool();
      models_[o].predict(mean_[o], deviation_[o]);
    }
    rank(wanted);
  }

 private:
  /// Logarithms (or the values themselves), scaled to unit spread; failures take the worst.
  void transform() {
    const std::size_t objectives = models_.size();
    mean_.resize(objectives);
    deviation_.resize(objectives);
    successes_ = 0;
    transformed_.assign(outcomes_.size(), std::vector<double>(objectives, 0.0));
    for (std::size_t o = 0; o < objectives; ++o) {
      bool positive = true;
      std::vector<double> ok;
      for (const auto& values : outcomes_)
        if (!values.empty()) positive = positive && values[o] > 0;
      for (const auto& values : outcomes_)
        if (!values.empty()) ok.push_back(positive ? std::log(values[o]) : values[o]);
      successes_ = ok.size();
      if (ok.empty()) return;
      const double ceiling = quantile(ok, real("ceiling")), best = *std::min_element(ok.begin(), ok.end());
      for (double& v : ok) v = std::min(v, ceiling);
      const double centre = median(ok), worst = ceiling + 0.3 * (ceiling - best);
      const double scale = std::max(std::sqrt(variance(ok)), 1e-12);
      for (std::size_t i = 0; i < outcomes_.size(); ++i) {
        const double v = outcomes_[i].empty() ? worst
                         : positive           ? std::log(outcomes_[i][o])
                                              : outcomes_[i][o];
        transformed_[i][o] = (outcomes_[i].empty() ? v - centre : std::min(v, ceiling) - centre) / scale;
      }
    }
    std::vector<std::vector<double>> points;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < outcomes_.size(); ++i)
      if (!outcomes_[i].empty()) {
        points.push_back(transformed_[i]);
        of.push_back(i);
      }
    front_.clear();
    front_places_.clear();
    for (const std::size_t f : pareto_front(points)) {
      front_.push_back(points[f]);
      front_places_.push_back(places_[of[f]]);
    }
  }

  /// Expected hypervolume improvement of two independent normals: the strips between the front's points.
  double expected_volume(const double mean[2], const double deviation[2], const double reference[2]) const {
    // E[max(0, c - X)] is the expected improvement below c
    const auto below = [&](int o, double c) { return expected_improvement(c - mean[o], deviation[o]); };
    double total = 0,
           reach = 0;  // strips along objective 0; in each, objective 1 improves below the front's step
    double upper = reference[1];
    for (std::size_t i = 0; i <= front_.size(); ++i) {
      const double right = i < front_.size() ? front_[i][0] : reference[0];
      const double expected = below(0, right);
      total += (expected - reach) * below(1, upper);
      reach = expected;
      if (i < front_.size()) upper = front_[i][1];
    }
    return total;
  }

  void rank(std::size_t wanted) {
    const auto& pool = models_.front().pool();
    std::vector<std::pair<double, ConfigurationIndex>> ranked;
    if (models_.size() == 2) {
      double reference[2] = {-1e300, -1e300};
      for (const auto& p : front_)
        for (int o = 0; o < 2; ++o) reference[o] = std::max(reference[o], p[static_cast<std::size_t>(o)]);
      for (double& r : reference) r += real("reference");
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (!memory().fresh(pool[i])) continue;
        const double mean[2] = {mean_[0][i], mean_[1][i]},
                     deviation[2] = {deviation_[0][i], deviation_[1][i]};
        ranked.emplace_back(expected_volume(mean, deviation, reference), pool[i]);
      }
    } else {
      std::vector<double> weights;
      double sum = 0;
      for (std::size_t o = 0; o < models_.size(); ++o)
        sum += weights.emplace_back(-std::log(1 - random().uniform()));
      const auto norm = [&](const auto& at) {
        double largest = -1e300, total = 0;
        for (std::size_t o = 0; o < models_.size(); ++o) {
          largest = std::max(largest, weights[o] / sum * at(o));
          total += weights[o] / sum * at(o);
        }
        return largest + 0.05 * total;
      };
      double best = 1e300;
      for (const auto& p : front_) best = std::min(best, norm([&](std::size_t o) { return p[o]; }));
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (!memory().fresh(pool[i])) continue;
        const double mean = norm([&](std::size_t o) { return mean_[o][i]; });
        const double deviation = norm([&](std::size_t o) { return deviation_[o][i]; });
        ranked.emplace_back(expected_improvement(best - mean, deviation), pool[i]);
      }
    }
    const std::size_t keep = std::min(wanted, ranked.size());
    std::partial_sort(
        ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(keep), ranked.end(),
        [](auto& a, auto& b) { return a.first > b.first || (a.first == b.first && a.second < b.second); });
    for (std::size_t i = 0; i < keep; ++i) propose(ranked[i].second);
  }

  std::vector<GaussianProcess> models_;
  Candidates candidates_;
  std::vector<ConfigurationIndex> places_, front_places_;
  std::vector<std::vector<double>> outcomes_;  ///< empty for a failure
  std::vector<std::vector<double>> transformed_, front_;
  std::vector<std::vector<float>> mean_, deviation_;
  std::size_t next_fit_ = 0, successes_ = 0;
  bool started_ = false;
};

}  // namespace

void add_bayesian_pareto(StrategyList& list) {
  auto description = describe_strategy<BayesianPareto>(
      "bayesian_pareto", "expected hypervolume improvement of a Gaussian process per objective",
      {{"initial", "size of the first, spread design", 6, {4, 6, 10}},
       {"reference",
        "how far beyond the front's ends volume counts, in standard deviations",
        2.0,
        {0.2, 1.0, 2.0}},
       {"ceiling", "quantile of each objective above which values count alike", 0.8, {0.7, 0.8, 0.9, 1.0}},
       {"candidates", "configurations the models are asked about at most", 12000, {}}});
  description.multi_objective = true;
  list.push_back(std::move(description));
}

}  // namespace ergotune::search
