// Bayesian optimisation with random forests (Hutter, Hoos and Leyton-Brown's SMAC, 2011): cheaper than the
// Gaussian process where there are many observations, and at ease with texts and jumps.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "search/builtin.hpp"
#include "search/candidates.hpp"
#include "search/models/acquisition.hpp"
#include "search/models/forest.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class BayesianForest : public StrategyBase {
 public:
  explicit BayesianForest(const StrategyContext& context)
      : StrategyBase("bayesian_forest", context),
        forest_(space(), {static_cast<std::size_t>(integer("trees")), 2, 6}),
        candidates_(space(), static_cast<std::size_t>(integer("candidates"))) {}

 protected:
  bool concurrent() const override { return started_ && told() > 2; }
  void learn(ConfigurationIndex index, double value, const Outcome&) override {
    const auto [place, is_new] = places_.try_emplace(index, values_.size());
    if (is_new) {
      rows_.resize(rows_.size() + forest_.features());
      forest_.encode(index, rows_.data() + rows_.size() - forest_.features());
      values_.push_back(value);
    } else {
      values_[place->second] = value;
      std::erase_if(successes_, [&](const auto& success) { return success.second == index; });
    }
    if (std::isfinite(value)) successes_.emplace_back(value, index);
  }

  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      auto size = static_cast<std::size_t>(integer("initial"));
      if (context().budget > 0) size = std::min<std::size_t>(size, std::max<std::uint64_t>(3, context().budget / 5));
      propose_all(space().latin_hypercube(size, random()));
      if (queued() > 0) return;
    }
    if (successes_.size() < 2) return;
    learn_forest();
    rank_candidates();
    // every so often something at random: trees know nothing outside what they saw
    if (random().chance(real("exploration")))
      if (const auto any = memory().random_fresh(random())) propose(*any);
    for (const auto& [gain, index] : ranked_) {
      if (queued() >= wanted) break;
      propose(index);
    }
  }

 private:
  void learn_forest() {
    const double worst = std::max_element(successes_.begin(), successes_.end())->first;
    logarithmic_ = best_value() > 0;
    std::vector<double> y;
    for (const double v : values_) y.push_back(transformed(std::isfinite(v) ? v : worst));
    forest_.fit(rows_, y, random());
  }
  void rank_candidates() {
    const std::size_t top = std::min<std::size_t>(5, successes_.size());
    std::partial_sort(successes_.begin(), successes_.begin() + static_cast<std::ptrdiff_t>(top), successes_.end());
    std::vector<ConfigurationIndex> incumbents;
    for (std::size_t i = 0; i < top; ++i) incumbents.push_back(successes_[i].second);
    const double target = transformed(best_value());
    std::vector<float> row(forest_.features() + 1);
    ranked_.clear();
    for (const ConfigurationIndex index : candidates_.draw(memory(), incumbents, {}, random(), candidates_.limit())) {
      if (!memory().fresh(index)) continue;
      double mean = 0, deviation = 0;
      forest_.encode(index, row.data());
      forest_.predict(row.data(), mean, deviation);
      ranked_.emplace_back(expected_improvement(target - mean, deviation), index);
    }
    std::sort(ranked_.begin(), ranked_.end(), [](auto& a, auto& b) { return a.first > b.first; });
  }
  double transformed(double v) const { return logarithmic_ ? std::log(v) : v; }

  RandomForest forest_;
  Candidates candidates_;
  std::vector<float> rows_;
  std::vector<double> values_;
  std::unordered_map<ConfigurationIndex, std::size_t> places_;
  std::vector<std::pair<double, ConfigurationIndex>> successes_, ranked_;
  bool started_ = false, logarithmic_ = true;
};

}  // namespace

void add_forest(StrategyList& list) {
  list.push_back(describe_strategy<BayesianForest>(
      "bayesian_forest", "expected improvement of a random forest",
      {{"initial", "size of the first, spread design", 12, {8, 12, 20}},
       {"trees", "in the forest", 40, {20, 40, 80}},
       {"exploration", "chance of a random configuration", 0.05, {0.0, 0.05, 0.1}},
       {"candidates", "configurations looked at per step", 1200, {600, 1200, 3000}}}));
}

}  // namespace ergotune::search
