// What a Gaussian process learns of its own scales.
#include "search/models/gaussian_process_state.hpp"

namespace ergotune::search {

double GaussianProcess::State::loss(const Hyperparameters& h, const std::vector<std::size_t>& subset,
                                    std::vector<Table>& scratch) const {
  const auto n = static_cast<Eigen::Index>(subset.size());
  for (std::size_t f = 0; f < scratch.size(); ++f)
    scratch[f].build(static_cast<float>(std::exp(h.log_length[f])), h.share());
  Eigen::MatrixXd k(n, n);
  Eigen::VectorXd y(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto& a = levels[subset[static_cast<std::size_t>(i)]];
    y[i] = values[static_cast<Eigen::Index>(subset[static_cast<std::size_t>(i)])];
    for (Eigen::Index j = 0; j <= i; ++j) {
      const auto& b = levels[subset[static_cast<std::size_t>(j)]];
      float product = 1;
      for (std::size_t f = 0; f < scratch.size(); ++f) product *= scratch[f].between(a[f], b[f]);
      k(i, j) = product;
    }
    k(i, i) += std::exp(h.log_noise);
  }
  const Eigen::LLT<Eigen::MatrixXd> llt(k);
  if (llt.info() != Eigen::Success) return 1e300;
  const Eigen::VectorXd white_y = llt.matrixL().solve(y);
  const Eigen::VectorXd white_1 = llt.matrixL().solve(Eigen::VectorXd::Ones(n));
  const double mean = white_1.dot(white_y) / white_1.squaredNorm();
  const double variance = std::max((white_y - mean * white_1).squaredNorm() / static_cast<double>(n), 1e-12);
  const Eigen::MatrixXd& l = llt.matrixLLT();
  double result = 0.5 * static_cast<double>(n) * std::log(variance) + l.diagonal().array().log().sum();
  for (std::size_t f = 0; f < scratch.size(); ++f) {
    const double z = (h.log_length[f] - supposed.log_length[f]) / spread;
    result += 0.5 * z * z;
  }
  const double z = (h.log_noise - supposed.log_noise) / (1.5 * spread);
  const double s = (h.share_logit - supposed.share_logit) / (1.5 * spread);
  return result + 0.5 * z * z + 0.5 * s * s;
}

namespace {
// The likelihood of a few hundred points says enough: the best ones and an even selection of the others.
constexpr std::size_t kFitLimit = 160;
}  // namespace

double GaussianProcess::operations_of_fit() const {
  const auto n = static_cast<double>(std::min(state_->observed.size(), kFitLimit));
  const auto features = static_cast<double>(state_->features.size());
  constexpr double kTrials = 3 * 1.7;  // steps, each tried up or down
  return kTrials * (features + 2) * (n * n * n / 3 + n * n * features);
}

void GaussianProcess::fit(double effort) {
  State& s = *state_;
  if (s.observed.size() < 3) return;
  std::vector<std::size_t> subset(s.observed.size());
  for (std::size_t i = 0; i < subset.size(); ++i) subset[i] = i;
  if (subset.size() > kFitLimit) {
    std::sort(subset.begin(), subset.end(), [&](std::size_t a, std::size_t b) {
      return s.values[static_cast<Eigen::Index>(a)] < s.values[static_cast<Eigen::Index>(b)];
    });
    std::vector<std::size_t> kept(subset.begin(), subset.begin() + kFitLimit / 2);
    const double stride = static_cast<double>(subset.size() - kFitLimit / 2) / (kFitLimit / 2.0);
    for (std::size_t i = 0; i < kFitLimit / 2; ++i)
      kept.push_back(subset[kFitLimit / 2 + static_cast<std::size_t>(static_cast<double>(i) * stride)]);
    subset = std::move(kept);
  }
  std::vector<Table> scratch = s.tables;
  Hyperparameters best = s.hyper;
  const double loss_before = s.loss(best, subset, scratch);
  double best_loss = loss_before;
  const auto attempt = [&](double& x, double step, double low, double high) {
    const double before = x;
    for (const double sign : {1.0, -1.0}) {
      x = std::clamp(before + sign * step, low, high);
      const double loss = s.loss(best, subset, scratch);
      if (loss < best_loss) {
        best_loss = loss;
        return;
      }
    }
    x = before;
  };
  // pattern search, coordinate by coordinate
  for (const double step : {1.0, 0.5, 0.25}) {
    const int sweeps = std::max(1, static_cast<int>(std::lround(effort)));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (double& x : best.log_length) attempt(x, step, std::log(0.05), std::log(30.0));
      attempt(best.log_noise, 2 * step, std::log(1e-6), std::log(0.5));
      attempt(best.share_logit, step, -4.0, 4.0);
    }
  }
  if (best_loss == loss_before) return;
  s.hyper = best;
  s.stale = true;
}

GaussianProcess::Scales GaussianProcess::scales() const { return state_->hyper; }

void GaussianProcess::suppose(const Scales& scales, double spread) {
  State& s = *state_;
  static_cast<Scales&>(s.supposed) = scales;
  s.spread = spread;
  s.hyper = s.supposed;
  s.stale = true;
  s.build_tables();
}

void GaussianProcess::add_feature(std::function<float(ConfigurationIndex)> value, double length) {
  constexpr int kLevels = 33;
  State& s = *state_;
  Table& table = s.tables.emplace_back();
  for (int i = 0; i < kLevels; ++i) table.levels.push_back(static_cast<float>(i) / (kLevels - 1));
  s.given.push_back(std::move(value));
  s.supposed.log_length.push_back(std::log(length));
  s.hyper = s.supposed;
  s.build_tables();
}

double GaussianProcess::cross_validated_r2() const {
  const State& s = *state_;
  const auto n = static_cast<Eigen::Index>(s.observed.size());
  if (n < 3 || s.values.size() != n) return 0;
  // Rasmussen and Williams, 5.12: the error at one left out is (K^-1 r) there, over the diagonal of K^-1
  const Eigen::MatrixXd inverse =
      s.factor.topLeftCorner(n, n).triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(n, n));
  const Eigen::VectorXd ones = inverse.rowwise().sum(), white = inverse * s.values;
  const Eigen::VectorXd weighted = inverse.transpose() * (white - ones.dot(white) / ones.squaredNorm() * ones);
  const Eigen::VectorXd errors = weighted.cwiseQuotient(inverse.colwise().squaredNorm().transpose());
  const double total = (s.values.array() - s.values.mean()).matrix().squaredNorm();
  return total > 0 ? 1 - errors.squaredNorm() / total : 0.0;
}

}  // namespace ergotune::search
