// Populations that recombine members or learn a distribution: genetic, estimation of distribution, CMA-ES.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/heuristics/population.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

/// Tournament selection, uniform crossover, mutation of single parameters; the best members survive.
class Genetic : public Population {
 public:
  explicit Genetic(const StrategyContext& c) : Population("genetic", c) {}

 protected:
  std::vector<Member> breed() override {
    std::vector<Member> children;
    while (children.size() < population()) {
      const Member &a = pick(), &b = pick();
      children.push_back(child_of(a, b));
    }
    return children;
  }
  void select(std::vector<Member>& members, std::vector<Member>& children) override {
    const std::size_t size = members.size();
    for (Member& child : children) {
      const bool twin = std::any_of(members.begin(), members.end(), [&](auto& m) { return m.index == child.index; });
      if (!twin) members.push_back(std::move(child));
    }
    std::sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.value < b.value; });
    if (members.size() > size) members.resize(size);
  }

 private:
  const Member& pick() {
    const auto& m = members();
    const Member* best = &m[random().below(m.size())];
    for (std::int64_t i = 1; i < integer("tournament"); ++i) {
      const Member& other = m[random().below(m.size())];
      if (other.value < best->value) best = &other;
    }
    return *best;
  }
};

/// Univariate marginal distributions of the best members (Muehlenbein, 1997), smoothed.
class EstimationOfDistribution : public Population {
 public:
  explicit EstimationOfDistribution(const StrategyContext& c) : Population("estimation_of_distribution", c) {}

 protected:
  std::vector<Member> breed() override {
    const std::size_t elite = std::max<std::size_t>(
        2, static_cast<std::size_t>(std::lround(real("elite") * static_cast<double>(members().size()))));
    std::vector<std::vector<double>> weights(moves().dimensions());
    for (std::size_t p = 0; p < weights.size(); ++p) {
      weights[p].assign(moves().count(p), real("smoothing") / moves().count(p));
      for (std::size_t i = 0; i < std::min(elite, members().size()); ++i) {
        const auto at = static_cast<std::size_t>(
            std::clamp(std::round(members()[i].point[p]), 0.0, static_cast<double>(moves().count(p) - 1)));
        weights[p][at] += 1.0 / static_cast<double>(elite);
      }
    }
    std::vector<Member> drawn;
    while (drawn.size() < population()) {
      std::vector<std::uint32_t> target(moves().dimensions());
      for (std::size_t p = 0; p < target.size(); ++p) target[p] = draw(weights[p]);
      const ConfigurationIndex from = members()[random().below(std::min(elite, members().size()))].index;
      ConfigurationIndex index = moves().towards(from, std::span<const std::uint32_t>(target), random());
      for (int attempt = 0; attempt < 3 && memory().known(index); ++attempt)
        index = moves().random_neighbour(index, random());
      drawn.push_back(member_of(index));
    }
    return drawn;
  }
  void select(std::vector<Member>& members, std::vector<Member>& drawn) override {
    const std::size_t size = members.size();
    members.insert(members.end(), drawn.begin(), drawn.end());
    std::sort(members.begin(), members.end(),
              [](auto& a, auto& b) { return a.value < b.value || (a.value == b.value && a.index < b.index); });
    members.erase(std::unique(members.begin(), members.end(), [](auto& a, auto& b) { return a.index == b.index; }),
                  members.end());
    if (members.size() > size) members.resize(size);
  }

 private:
  std::uint32_t draw(const std::vector<double>& weights) {
    double left = random().uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t v = 0; v + 1 < weights.size(); ++v) {
      left -= weights[v];
      if (left < 0) return static_cast<std::uint32_t>(v);
    }
    return static_cast<std::uint32_t>(weights.size() - 1);
  }
};

/// Covariance matrix adaptation (Hansen, "The CMA Evolution Strategy: A Tutorial", 2016) over positions scaled to [0,
/// 1]. Restarts from a random configuration when its steps have become small, or after many generations.
class CmaEs : public Population {
 public:
  explicit CmaEs(const StrategyContext& c) : Population("cma_es", c) {}

 protected:
  std::vector<Member> breed() override {
    const auto n = static_cast<Eigen::Index>(moves().free().size());
    if (n == 0) return {members().front()};
    if (mean_.size() != n) restart(true);
    if (generation_ > 0) update();
    if (sigma_ < 0.02 || generation_ > 60) restart(false);
    ++generation_;
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(covariance_);
    basis_ = eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(1e-12).cwiseSqrt().asDiagonal();
    inverse_root_ = eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(1e-12).cwiseSqrt().cwiseInverse().asDiagonal() *
                    eigen.eigenvectors().transpose();
    std::vector<Member> sample;
    steps_.clear();
    for (std::size_t k = 0; k < population(); ++k) {
      Eigen::VectorXd z(n);
      for (Eigen::Index i = 0; i < n; ++i) z[i] = random().normal();
      const Eigen::VectorXd x = (mean_ + sigma_ * (basis_ * z)).cwiseMax(0.0).cwiseMin(1.0);
      std::vector<double> point(moves().dimensions(), 0.0);
      for (Eigen::Index i = 0; i < n; ++i) {
        const std::size_t p = moves().free()[static_cast<std::size_t>(i)];
        point[p] = x[i] * (moves().count(p) - 1);
      }
      const ConfigurationIndex from = members()[random().below(members().size())].index;
      sample.push_back(member_at(std::move(point), from));
      steps_.push_back((x - mean_) / sigma_);
    }
    return sample;
  }

 private:
  void restart(bool first) {
    const auto n = static_cast<Eigen::Index>(moves().free().size());
    mean_.resize(n);
    const ConfigurationIndex centre =
        first ? std::min_element(members().begin(), members().end(), [](auto& a, auto& b) { return a.value < b.value; })
                    ->index
              : space().sample(random());
    const auto point = moves().point(centre);
    for (Eigen::Index i = 0; i < n; ++i) {
      const std::size_t p = moves().free()[static_cast<std::size_t>(i)];
      mean_[i] = point[p] / (moves().count(p) - 1);
    }
    covariance_ = Eigen::MatrixXd::Identity(n, n);
    path_c_ = path_s_ = Eigen::VectorXd::Zero(n);
    sigma_ = real("step");
    generation_ = 0;
  }

  void update() {
    const auto n = static_cast<double>(mean_.size());
    const auto lambda = members().size();
    if (steps_.size() != lambda) return;
    std::vector<std::size_t> order(lambda);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members()[a].value < members()[b].value; });
    const std::size_t mu = std::max<std::size_t>(1, lambda / 2);
    std::vector<double> w;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < mu; ++i) {
      w.push_back(std::log(static_cast<double>(mu) + 0.5) - std::log(static_cast<double>(i) + 1));
      sum += w.back();
    }
    for (double& x : w) {
      x /= sum;
      squares += x * x;
    }
    const double mu_eff = 1 / squares;
    const double cs = (mu_eff + 2) / (n + mu_eff + 5), cc = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n);
    const double c1 = 2 / ((n + 1.3) * (n + 1.3) + mu_eff);
    const double cmu = std::min(1 - c1, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) * (n + 2) + mu_eff));
    const double damping = 1 + 2 * std::max(0.0, std::sqrt((mu_eff - 1) / (n + 1)) - 1) + cs;
    const double expected = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));

    Eigen::VectorXd step = Eigen::VectorXd::Zero(mean_.size());
    for (std::size_t i = 0; i < mu; ++i) step += w[i] * steps_[order[i]];
    mean_ += sigma_ * step;
    path_s_ = (1 - cs) * path_s_ + std::sqrt(cs * (2 - cs) * mu_eff) * (inverse_root_ * step);
    const double norm = path_s_.norm();
    const double correction = std::sqrt(1 - std::pow(1 - cs, 2.0 * (static_cast<double>(generation_) + 1)));
    const bool settled = norm / correction < (1.4 + 2 / (n + 1)) * expected;
    path_c_ = (1 - cc) * path_c_;
    if (settled) path_c_ += std::sqrt(cc * (2 - cc) * mu_eff) * step;
    Eigen::MatrixXd spread = Eigen::MatrixXd::Zero(mean_.size(), mean_.size());
    for (std::size_t i = 0; i < mu; ++i) spread += w[i] * steps_[order[i]] * steps_[order[i]].transpose();
    covariance_ = (1 - c1 - cmu) * covariance_ + c1 * path_c_ * path_c_.transpose() + cmu * spread;
    sigma_ *= std::exp(std::min(1.0, cs / damping * (norm / expected - 1)));
  }

  Eigen::VectorXd mean_, path_c_, path_s_;
  Eigen::MatrixXd covariance_, basis_, inverse_root_;
  std::vector<Eigen::VectorXd> steps_;
  double sigma_ = 0.3;
  int generation_ = 0;
};

}  // namespace

void add_evolution(StrategyList& list) {
  const StrategyOption size{"population", "members (fewer where the budget is small)", 20, {10, 20, 30, 50}};
  list.push_back(describe_strategy<Genetic>("genetic", "tournaments, uniform crossover, mutation",
                                            {size,
                                             {"mutation", "share of children that mutate", 0.5, {0.2, 0.5, 0.8}},
                                             {"tournament", "members that compete to be a parent", 3, {2, 3, 4}}}));
  list.push_back(describe_strategy<EstimationOfDistribution>(
      "estimation_of_distribution", "draws from the best members' distribution of each parameter",
      {size,
       {"elite", "share of members learned from", 0.4, {0.2, 0.4, 0.6}},
       {"smoothing", "weight of the uniform distribution", 0.2, {0.05, 0.2, 0.5}}}));
  list.push_back(describe_strategy<CmaEs>("cma_es", "covariance matrix adaptation on value positions",
                                          {{"population", "members (fewer where the budget is small)", 12, {8, 12, 20}},
                                           {"step", "first step, share of each range", 0.3, {0.15, 0.3, 0.5}}}));
}

}  // namespace ergotune::search
