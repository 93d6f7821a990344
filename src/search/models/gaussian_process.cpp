#include "search/models/gaussian_process.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>

namespace ergotune::search {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// The distinct coordinates of a feature, and its kernel between each two of them in a table if they are few. A larger
// table would exceed the cache and take longer to compute than the few hundred thousand values that are needed.
struct Table {
  static constexpr std::size_t kTabled = 512;  // levels
  std::vector<float> levels;
  bool nominal = false;
  std::vector<float> kernel;  // levels x levels, or empty
  float length = 1, share = 0;

  float calculated(std::size_t a, std::size_t b) const {
    const float distance = nominal ? (a == b ? 0.0f : 1.0f) : std::abs(levels[a] - levels[b]);
    const float r = std::sqrt(3.0f) * distance / length;
    return 1 - share + share * (1 + r) * std::exp(-r);  // Matern, nu = 3/2
  }
  float between(std::size_t a, std::size_t b) const {
    return kernel.empty() ? calculated(a, b) : kernel[a * levels.size() + b];
  }

  void build(float new_length, float new_share) {
    length = new_length;
    share = new_share;
    const std::size_t n = levels.size();
    if (n > kTabled) return;
    kernel.resize(n * n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) kernel[a * n + b] = calculated(a, b);
  }
};

struct Hyperparameters : GaussianProcess::Scales {
  Hyperparameters() {
    log_noise = std::log(1e-3);
    share_logit = -1;
  }
  float share() const { return static_cast<float>(1 / (1 + std::exp(-share_logit))); }
};

struct GaussianProcess::State {
  const SearchSpace* space = nullptr;
  std::vector<Feature> features;
  std::vector<std::function<float(ConfigurationIndex)>> given;  // features from elsewhere, after those
  std::vector<Table> tables;
  std::vector<std::vector<std::uint16_t>> level_at;  // per feature of one parameter: its level by position
  Hyperparameters hyper;
  Hyperparameters supposed;  ///< beforehand
  double spread = 1;         ///< of what is supposed

  // levels per feature: pool columns feature by feature, observations row by row
  std::vector<ConfigurationIndex> pool;
  std::vector<std::vector<std::uint16_t>> pool_levels;
  std::vector<ConfigurationIndex> observed;
  std::vector<std::vector<std::uint16_t>> levels;
  Eigen::VectorXd values;

  Eigen::MatrixXd factor;  // lower Cholesky factor of K + noise, capacity grows by doubling
  // factor^-1 K(observed, pool) in blocks of this many candidates: a block stays in the cache during all operations on
  // it. An odd number of cache lines, since otherwise rows would compete for the same lines.
  static constexpr Eigen::Index kColumns = 496;
  std::vector<Matrix> whitened;
  Vector explained;       // column sums of squares of `whitened`
  Eigen::Index rows = 0;  // that `whitened` has; those of later observations come with the next prediction
  double noise_deviation = 0, least_mean = 0;  // of the last prediction
  bool stale = true;                           // the scales are not those that factor and `whitened` were built with

  std::vector<std::uint16_t> levels_of(ConfigurationIndex index) const {
    std::vector<std::uint32_t> positions(space->dimensions());
    space->values_at(index, positions);
    std::vector<std::uint16_t> result(tables.size());
    for (std::size_t g = 0; g < given.size(); ++g)
      result[features.size() + g] = level_of(features.size() + g, given[g](index));
    for (std::size_t f = 0; f < features.size(); ++f)
      result[f] = level_at[f].empty() ? level_of(f, features[f].at(positions.data()))
                                      : level_at[f][positions[features[f].parameters.front()]];
    return result;
  }
  /// The nearest.
  std::uint16_t level_of(std::size_t feature, float x) const {
    const auto& known = tables[feature].levels;
    auto at = std::lower_bound(known.begin(), known.end(), x);
    // Values too close to tell apart share a level, which may lie on either side.
    if (at == known.end() || (at != known.begin() && x - *(at - 1) <= *at - x)) --at;
    return static_cast<std::uint16_t>(at - known.begin());
  }

  double kernel(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) const {
    float product = 1;
    for (std::size_t f = 0; f < tables.size(); ++f) product *= tables[f].between(a[f], b[f]);
    return product;
  }

  void build_tables() {
    for (std::size_t f = 0; f < tables.size(); ++f)
      tables[f].build(static_cast<float>(std::exp(hyper.log_length[f])), hyper.share());
  }
  double noise() const { return std::exp(hyper.log_noise); }

  // Kernel between one observation and `count` of the pool, from `first` on.
  Vector kernel_row(const std::vector<std::uint16_t>& of, Eigen::Index first, Eigen::Index count) const {
    Vector row = Vector::Ones(count);
    for (std::size_t f = 0; f < tables.size(); ++f) {
      const Table& table = tables[f];
      const std::uint16_t* at = pool_levels[f].data() + first;
      if (table.kernel.empty()) {
        for (Eigen::Index i = 0; i < count; ++i) row[i] *= table.calculated(of[f], at[i]);
      } else {
        const float* known = table.kernel.data() + of[f] * table.levels.size();
        for (Eigen::Index i = 0; i < count; ++i) row[i] *= known[at[i]];
      }
    }
    return row;
  }

  // Extends the factor by observation n.
  void extend(std::size_t n) {
    const auto size = static_cast<Eigen::Index>(n);
    if (factor.rows() <= size) {
      const Eigen::Index capacity = std::max<Eigen::Index>(64, 2 * size);
      factor.conservativeResize(capacity, capacity);
    }
    Eigen::VectorXd column(size);
    for (Eigen::Index i = 0; i < size; ++i) column[i] = kernel(levels[n], levels[static_cast<std::size_t>(i)]);
    if (size > 0) factor.topLeftCorner(size, size).triangularView<Eigen::Lower>().solveInPlace(column);
    factor.row(size).head(size) = column.transpose();
    factor(size, size) = std::sqrt(std::max(1 + noise() - column.squaredNorm(), 1e-9));
  }

  /// Gives a block of `whitened` the rows from `rows` to `n`; `lower` are those of the factor.
  void whiten(std::size_t block, Eigen::Index n, const Eigen::MatrixXf& lower) {
    const Eigen::Index first = static_cast<Eigen::Index>(block) * kColumns;
    const Eigen::Index count = std::min(kColumns, static_cast<Eigen::Index>(pool.size()) - first);
    Matrix& all = whitened[block];
    if (all.rows() < n || all.cols() != count) all.conservativeResize(std::max<Eigen::Index>(64, n + n / 2), count);
    for (Eigen::Index i = rows; i < n; ++i)
      all.row(i) = kernel_row(levels[static_cast<std::size_t>(i)], first, count).transpose();
    auto fresh = all.middleRows(rows, n - rows);
    if (rows > 0) fresh.noalias() -= lower.leftCols(rows) * all.topRows(rows);
    lower.rightCols(n - rows).triangularView<Eigen::Lower>().solveInPlace(fresh);
    explained.segment(first, count) += fresh.cwiseAbs2().colwise().sum().transpose();
  }

  /// whitened^T weights, one for each observation.
  Vector weighed(const Vector& weights) {
    const Eigen::Index n = weights.size(), m = static_cast<Eigen::Index>(pool.size());
    const Eigen::MatrixXf lower = factor.block(rows, 0, n - rows, n).cast<float>();
    Vector sums(m);
    for (std::size_t block = 0; block < whitened.size(); ++block) {
      if (rows < n) whiten(block, n, lower);
      const Matrix& here = whitened[block];
      sums.segment(static_cast<Eigen::Index>(block) * kColumns, here.cols()).noalias() =
          here.topRows(n).transpose() * weights;
    }
    rows = n;
    return sums;
  }

  // From scratch: one factorisation and one blocked solve, far cheaper than extending n times.
  void rebuild() {
    build_tables();
    const auto n = static_cast<Eigen::Index>(observed.size()), m = static_cast<Eigen::Index>(pool.size());
    explained = Vector::Zero(m);
    whitened.resize(static_cast<std::size_t>((m + kColumns - 1) / kColumns));
    rows = 0;
    stale = false;
    if (n == 0) return;
    const Eigen::Index capacity = std::max<Eigen::Index>(64, n + n / 2);
    Eigen::MatrixXd gram(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j)
        gram(i, j) = kernel(levels[static_cast<std::size_t>(i)], levels[static_cast<std::size_t>(j)]);
      gram(i, i) += noise();
    }
    const Eigen::LLT<Eigen::MatrixXd> llt(gram);
    factor.resize(capacity, capacity);
    factor.topLeftCorner(n, n) = llt.matrixLLT();
    const Eigen::MatrixXf lower = factor.topLeftCorner(n, n).cast<float>();
    for (std::size_t block = 0; block < whitened.size(); ++block) whiten(block, n, lower);
    rows = n;
  }

  /// Negative log marginal likelihood of a subset, with the kernel's variance and the mean in closed form, plus priors.
  double loss(const Hyperparameters& h, const std::vector<std::size_t>& subset, std::vector<Table>& scratch) const;
};

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
// A few hundred points determine the likelihood well enough: the best ones and an even selection of the others.
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

void GaussianProcess::set_hyperparameter_prior(const Scales& scales, double spread) {
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

std::vector<GaussianProcess::LeftOut> GaussianProcess::leave_one_out() const {
  const State& s = *state_;
  const auto n = static_cast<Eigen::Index>(s.observed.size());
  if (n < 3 || s.values.size() != n) return {};
  // Rasmussen and Williams, 5.12: the error at one left out is (K^-1 r) there, over the diagonal of K^-1, whose
  // reciprocal is the variance
  const Eigen::MatrixXd inverse =
      s.factor.topLeftCorner(n, n).triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(n, n));
  const Eigen::VectorXd ones = inverse.rowwise().sum(), white = inverse * s.values;
  const Eigen::VectorXd residual = white - ones.dot(white) / ones.squaredNorm() * ones;
  const Eigen::VectorXd weighted = inverse.transpose() * residual, diagonal = inverse.colwise().squaredNorm();
  const double variance = residual.squaredNorm() / static_cast<double>(n);
  std::vector<LeftOut> list;
  for (Eigen::Index i = 0; i < n; ++i) list.push_back({weighted[i] / diagonal[i], std::sqrt(variance / diagonal[i])});
  return list;
}

double GaussianProcess::cross_validated_r2() const {
  const State& s = *state_;
  const double total = s.values.size() > 0 ? (s.values.array() - s.values.mean()).matrix().squaredNorm() : 0;
  double errors = 0;
  const std::vector<LeftOut> left_out = leave_one_out();
  for (const LeftOut& one : left_out) errors += one.error * one.error;
  return total > 0 && !left_out.empty() ? 1 - errors / total : 0.0;
}

GaussianProcess::GaussianProcess(const SearchSpace& space) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.space = &space;
  s.features = make_features(space);
  for (const Feature& feature : s.features) {
    Table table;
    table.nominal = feature.kind == Feature::Kind::nominal;
    std::vector<float> sums{0.0f};
    for (const auto& coordinates : feature.coordinates) {
      std::vector<float> next;
      for (const float sum : sums)
        for (const float c : coordinates) next.push_back(sum + c);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end(), [](float a, float b) { return std::abs(a - b) < 1e-4f; }),
                 next.end());
      sums = std::move(next);
    }
    table.levels = std::move(sums);
    s.tables.push_back(std::move(table));
    std::vector<std::uint16_t>& level_at = s.level_at.emplace_back();
    if (feature.parameters.size() == 1)
      for (const float x : feature.coordinates.front()) level_at.push_back(s.level_of(s.tables.size() - 1, x));
    double length = 0;
    switch (feature.kind) {
      case Feature::Kind::ordinal:
        length = 1.0;
        break;
      case Feature::Kind::nominal:
        length = 1.5;
        break;
      case Feature::Kind::divisibility:
        length = 3.0;
        break;
      case Feature::Kind::product:
        length = 2.0;
        break;
    }
    // clocks and power limits act smoothly, code parameters need not
    const bool is_execution = std::all_of(feature.parameters.begin(), feature.parameters.end(), [&](std::size_t p) {
      return space.parameters()[p].kind != ParameterKind::code;
    });
    if (is_execution) length *= 2;
    s.supposed.log_length.push_back(std::log(length));
  }
  s.hyper = s.supposed;
  s.build_tables();
}
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;
GaussianProcess::~GaussianProcess() = default;

void GaussianProcess::set_pool(std::vector<ConfigurationIndex> pool) {
  State& s = *state_;
  s.pool = std::move(pool);
  s.pool_levels.assign(s.tables.size(), std::vector<std::uint16_t>(s.pool.size()));
  for (std::size_t i = 0; i < s.pool.size(); ++i) {
    const auto levels = s.levels_of(s.pool[i]);
    for (std::size_t f = 0; f < levels.size(); ++f) s.pool_levels[f][i] = levels[f];
  }
  s.rebuild();
}
const std::vector<ConfigurationIndex>& GaussianProcess::pool() const { return state_->pool; }
std::size_t GaussianProcess::observations() const { return state_->observed.size(); }

void GaussianProcess::observe(ConfigurationIndex index) {
  State& s = *state_;
  s.observed.push_back(index);
  s.levels.push_back(s.levels_of(index));
  s.extend(s.observed.size() - 1);
}

void GaussianProcess::keep_first(std::size_t count) {
  State& s = *state_;
  if (count >= s.observed.size()) return;
  s.observed.resize(count);
  s.levels.resize(count);
  const auto kept = static_cast<Eigen::Index>(count);
  if (s.rows <= kept) return;
  for (std::size_t block = 0; block < s.whitened.size(); ++block) {
    const auto gone = s.whitened[block].middleRows(kept, s.rows - kept);
    s.explained.segment(static_cast<Eigen::Index>(block) * State::kColumns, gone.cols()) -=
        gone.cwiseAbs2().colwise().sum().transpose();
  }
  s.rows = kept;
}

void GaussianProcess::set_values(std::span<const double> values) {
  state_->values = Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

void GaussianProcess::refit_pool() {
  if (state_->stale) state_->rebuild();
}

double GaussianProcess::noise_deviation() const { return state_->noise_deviation; }
double GaussianProcess::least_mean() const { return state_->least_mean; }

void GaussianProcess::predict(std::vector<float>& mean, std::vector<float>& deviation) const {
  State& s = *state_;
  const auto n = static_cast<Eigen::Index>(s.observed.size());
  const std::size_t m = s.pool.size();
  mean.assign(m, 0.0f);
  deviation.assign(m, 1.0f);
  if (n == 0 || s.values.size() != n) return;
  const auto l = s.factor.topLeftCorner(n, n).triangularView<Eigen::Lower>();
  const Eigen::VectorXd white_y = l.solve(s.values);
  const Eigen::VectorXd white_1 = l.solve(Eigen::VectorXd::Ones(n));
  const double centre = white_1.dot(white_y) / white_1.squaredNorm();
  const Eigen::VectorXd residual = white_y - centre * white_1;
  const double variance = std::max(residual.squaredNorm() / static_cast<double>(n), 1e-12);
  s.noise_deviation = std::sqrt(variance * s.noise());
  // an observation's value lies above its mean by the noise times (K + noise)^-1 r
  s.least_mean = (s.values - s.noise() * l.transpose().solve(residual)).minCoeff();
  const Vector about = s.weighed(residual.cast<float>());
  for (std::size_t i = 0; i < m; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    mean[i] = static_cast<float>(centre) + about[at];
    deviation[i] = static_cast<float>(std::sqrt(variance * (std::max(1.0 - s.explained[at], 1e-6) + s.noise())));
  }
}

}  // namespace ergotune::search
