// Bayesian optimisation for Pareto sets: a Gaussian process per objective. With two objectives the candidate
// with the largest expected hypervolume improvement comes next (Emmerich et al., 2011; exact for independent
// normals); with more, expected improvement of a randomly weighted Chebyshev norm (ParEGO, Knowles 2006).
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/statistics.hpp"
#include "search/models/acquisition.hpp"
#include "search/models/gaussian_process.hpp"
#include "search/models/prior_features.hpp"
#include "search/pareto.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class BayesianPareto : public StrategyBase {
 public:
  explicit BayesianPareto(const StrategyContext& context)
      : StrategyBase("bayesian_pareto", context),
        candidates_(space(), static_cast<std::size_t>(integer("candidates"))),
        prior_(space(), context.priors) {
    for (std::size_t o = 0; o < std::max<std::size_t>(1, context.objectives); ++o)
      prior_.teach(models_.emplace_back(space()));
  }

 protected:
  bool concurrent() const override { return started_; }

  void learn(ConfigurationIndex index, double, const Outcome& outcome) override {
    Observation& place = place_of(index);
    place.pending = false;
    place.values.clear();
    if (outcome.ok && outcome.values.size() == models_.size()) place.values = outcome.values;
  }

  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      propose_all(space().low_discrepancy(static_cast<std::size_t>(integer("initial")), random()));
      if (queued() > 0) return;
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      if (!transform()) return;
      update();
      if (!propose_best()) return;
    }
  }

 private:
  struct Observation {
    ConfigurationIndex index = 0;
    std::vector<double> values =
        {};  ///< empty for a failure; while it is pending what the models believe, as they see it
    bool pending = true;
  };
  /// How the models see an objective: logarithms (or the values themselves) from a centre, scaled to unit spread, high
  /// ones held at a ceiling, failures beyond it.
  struct View {
    bool logarithmic = true;
    double centre = 0, scale = 1, ceiling = 0, worst = 0;
  };

  Observation& place_of(ConfigurationIndex index) {
    const auto [at, is_new] = places_.try_emplace(index, observations_.size());
    if (is_new) {
      if (!prior_.empty()) prior_.expect({index});
      for (auto& model : models_) model.observe(index);
      observations_.push_back({index});
    }
    return observations_[at->second];
  }

  View view_of(std::size_t objective) const {
    View view;
    std::vector<double> ok;
    for (const Observation& o : observations_)
      if (!o.pending && !o.values.empty()) ok.push_back(o.values[objective]);
    view.logarithmic = std::all_of(ok.begin(), ok.end(), [](double v) { return v > 0; });
    for (double& v : ok) v = view.logarithmic ? std::log(v) : v;
    view.ceiling = quantile(ok, real("ceiling"));
    view.worst = view.ceiling + 0.3 * (view.ceiling - *std::min_element(ok.begin(), ok.end()));
    for (double& v : ok) v = std::min(v, view.ceiling);
    view.centre = median(ok);
    view.scale = std::max(std::sqrt(variance(ok)), 1e-12);
    return view;
  }

  /// Fills in what the models see, and the front of it; false where too little succeeded.
  bool transform() {
    const auto reported_well = std::count_if(observations_.begin(), observations_.end(),
                                             [](auto& o) { return !o.pending && !o.values.empty(); });
    if (reported_well < 2) return false;
    views_.clear();
    for (std::size_t o = 0; o < models_.size(); ++o) views_.push_back(view_of(o));
    transformed_.clear();
    std::vector<std::vector<double>> points;
    std::vector<ConfigurationIndex> of;
    for (const Observation& observation : observations_) {
      std::vector<double>& seen = transformed_.emplace_back(models_.size());
      for (std::size_t o = 0; o < models_.size(); ++o) {
        const View& view = views_[o];
        double v = view.worst;
        if (!observation.values.empty()) v = observation.values[o];
        if (!observation.pending && !observation.values.empty())
          v = std::min(view.logarithmic ? std::log(v) : v, view.ceiling);
        seen[o] = (v - view.centre) / view.scale;
      }
      if (observation.values.empty() || observation.pending) continue;
      points.push_back(seen);
      of.push_back(observation.index);
    }
    front_.clear();
    front_places_.clear();
    for (const std::size_t f : pareto_front(points)) {
      front_.push_back(points[f]);
      front_places_.push_back(of[f]);
    }
    return true;
  }

  void update() {
    const std::size_t n = observations_.size();
    const bool fit_due = n >= next_fit_;
    if (fit_due) next_fit_ = n + 1 + n / 8;
    const auto affordable = std::max<std::size_t>(800, static_cast<std::size_t>(3e6) / n);
    std::vector<ConfigurationIndex> pool;
    if (models_.front().pool().empty() || (!candidates_.whole() && fit_due) ||
        models_.front().pool().size() > std::max(affordable * 2, candidates_.limit() / 8))
      pool = candidates_.draw(memory(), front_places_, {}, random(), std::min(candidates_.limit(), affordable * 2));
    prior_.expect(pool);
    mean_.resize(models_.size());
    deviation_.resize(models_.size());
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

  /// Of two objectives.
  double gain_of_volume(std::size_t candidate) const {
    double reference[2] = {-1e300, -1e300};
    for (const auto& p : front_)
      for (int o = 0; o < 2; ++o) reference[o] = std::max(reference[o], p[static_cast<std::size_t>(o)]);
    for (double& r : reference) r += real("reference");
    const double mean[2] = {mean_[0][candidate], mean_[1][candidate]},
                 deviation[2] = {deviation_[0][candidate], deviation_[1][candidate]};
    return expected_volume(mean, deviation, reference);
  }

  /// The configuration that promises most. Until its outcome is known the models take it for a deviation worse than
  /// they think, and the front does without it: what is only hoped for would hide what is near it.
  bool propose_best() {
    const std::size_t objectives = models_.size();
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t o = 0; objectives != 2 && o < objectives; ++o)
      sum += weights.emplace_back(-std::log(1 - random().uniform()));
    for (double& w : weights) w /= sum;
    const auto norm = [&](const auto& at) {
      double largest = -1e300, total = 0;
      for (std::size_t o = 0; o < objectives; ++o) {
        largest = std::max(largest, weights[o] * at(o));
        total += weights[o] * at(o);
      }
      return largest + 0.05 * total;
    };
    double least = 1e300;
    for (const auto& p : front_)
      if (objectives != 2) least = std::min(least, norm([&](std::size_t o) { return p[o]; }));
    const auto gain = [&](std::size_t candidate) {
      if (objectives == 2) return gain_of_volume(candidate);
      const double mean = norm([&](std::size_t o) { return mean_[o][candidate]; });
      return expected_improvement(least - mean, norm([&](std::size_t o) { return deviation_[o][candidate]; }));
    };
    const auto& pool = models_.front().pool();
    std::optional<std::pair<double, std::size_t>> best;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (!memory().fresh(pool[i])) continue;
      const double here = gain(i);
      if (!best || here > best->first) best = {here, i};
    }
    if (!best) return false;
    const ConfigurationIndex index = pool[best->second];
    std::vector<double> believed;
    for (std::size_t o = 0; o < objectives; ++o)
      believed.push_back((mean_[o][best->second] + deviation_[o][best->second]) * views_[o].scale + views_[o].centre);
    place_of(index).values = std::move(believed);
    return propose(index);
  }

  std::vector<GaussianProcess> models_;
  Candidates candidates_;
  PriorFeatures prior_;
  std::vector<Observation> observations_;
  std::unordered_map<ConfigurationIndex, std::size_t> places_;
  std::vector<ConfigurationIndex> front_places_;
  std::vector<View> views_;
  std::vector<std::vector<double>> transformed_, front_;
  std::vector<std::vector<float>> mean_, deviation_;
  std::size_t next_fit_ = 0;
  bool started_ = false;
};

}  // namespace

void add_bayesian_pareto(StrategyList& list) {
  auto description = describe_strategy<BayesianPareto>(
      "bayesian_pareto", "expected hypervolume improvement of a Gaussian process per objective",
      {{"initial", "size of the first, spread design", 6, {4, 6, 10}},
       {"reference", "how far beyond the front's ends volume counts, in standard deviations", 2.0, {0.2, 1.0, 2.0}},
       {"ceiling", "quantile of each objective above which values count alike", 0.8, {0.7, 0.8, 0.9, 1.0}},
       {"candidates", "configurations the models are asked about at most", 12000, {}}});
  description.multi_objective = true;
  list.push_back(std::move(description));
}

}  // namespace ergotune::search
