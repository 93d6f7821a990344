// Bayesian optimisation.
#include <algorithm>
#include <cmath>

#include "ergotune/base/statistics.hpp"
#include "search/builtin.hpp"
#include "search/gaussian_process.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class Bayesian : public StrategyBase {
 public:
  explicit Bayesian(const StrategyContext& context) : StrategyBase("bayesian", context), model_(space()) {}

 protected:
  void learn(ConfigurationIndex index, double value, const Outcome&) override {
    model_.observe(index);
    raw_.push_back(value);
  }
  void advance(std::size_t wanted) override {
    if (!started_) {
      started_ = true;
      propose_all(space().latin_hypercube(static_cast<std::size_t>(integer("initial")), random()));
      std::vector<ConfigurationIndex> all(space().size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
      model_.set_pool(all);
      return;
    }
    (void)wanted;
    std::vector<double> ok;
    for (double v : raw_)
      if (std::isfinite(v)) ok.push_back(v);
    if (ok.size() < 2) return;
    std::sort(ok.begin(), ok.end());
    const double best = ok.front();
    const double clip = ok[static_cast<std::size_t>(real("clip") * (ok.size() - 1))];
    std::vector<double> y;
    for (double v : raw_) y.push_back(std::log(std::min(v, clip)));
    model_.set_values(y);
    if (raw_.size() >= next_fit_) {
      model_.fit();
      next_fit_ = std::max(raw_.size() + 5, raw_.size() * 5 / 4);
    }
    model_.predict(mean_, deviation_);
    double top = -1;
    ConfigurationIndex pick = 0;
    const double target = std::log(best) - real("margin");
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      if (!memory().fresh(i)) continue;
      const double z = (target - mean_[i]) / deviation_[i];
      const double ei = deviation_[i] * (z * normal_cdf(z) + std::exp(-0.5 * z * z) * 0.3989423);
      if (ei > top) {
        top = ei;
        pick = i;
      }
    }
    if (top >= 0) propose(pick);
  }

 private:
  GaussianProcess model_;
  std::vector<double> raw_;
  std::vector<float> mean_, deviation_;
  std::size_t next_fit_ = 0;
  bool started_ = false;
};

}  // namespace

void add_bayesian(StrategyList& list) {
  list.push_back(
      describe_strategy<Bayesian>("bayesian", "Gaussian process",
                                  {{"initial", "initial design", 10, {}},
                                   {"clip", "quantile of values above which all count alike", 1.0, {}},
                                   {"margin", "", 0.0, {}}}));
}
}  // namespace ergotune::search
