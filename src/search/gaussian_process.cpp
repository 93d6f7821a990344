#include "search/gaussian_process.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

namespace ergotune::search {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// A feature's distinct coordinates, and its kernel between each two of them.
struct Table {
  std::vector<float> levels;
  bool nominal = false;
  std::vector<float> kernel;  // levels x levels

  void build(float length, float share) {
    const std::size_t n = levels.size();
    kernel.resize(n * n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) {
        const float distance = nominal ? (a == b ? 0.0f : 1.0f) : std::abs(levels[a] - levels[b]);
        const float r = std::sqrt(3.0f) * distance / length;
        kernel[a * n + b] = 1 - share + share * (1 + r) * std::exp(-r);  // Matern, nu = 3/2
      }
  }
};

struct Hyperparameters {
  std::vector<double> log_length;
  double log_noise = std::log(1e-3);
  double share_logit = -1;
  float share() const { return static_cast<float>(1 / (1 + std::exp(-share_logit))); }
};

}  // namespace

struct GaussianProcess::State {
  const SearchSpace* space = nullptr;
  std::vector<Feature> features;
  std::vector<Table> tables;
  std::vector<std::vector<std::uint16_t>> level_at;  // per feature of one parameter: its level by position
  Hyperparameters hyper;
  std::vector<double> prior_log_length;

  // levels per feature: pool columns feature by feature, observations row by row
  std::vector<ConfigurationIndex> pool;
  std::vector<std::vector<std::uint16_t>> pool_levels;
  std::vector<ConfigurationIndex> observed;
  std::vector<std::vector<std::uint16_t>> levels;
  Eigen::VectorXd values;

  Eigen::MatrixXd factor;  // lower Cholesky factor of K + noise, capacity grows by doubling
  Matrix whitened;         // factor^-1 K(observed, pool)
  Vector explained;        // column sums of squares of `whitened`

  std::vector<std::uint16_t> levels_of(ConfigurationIndex index) const {
    std::vector<std::uint32_t> positions(space->dimensions());
    space->values_at(index, positions);
    std::vector<std::uint16_t> result(features.size());
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
    for (std::size_t f = 0; f < tables.size(); ++f)
      product *= tables[f].kernel[a[f] * tables[f].levels.size() + b[f]];
    return product;
  }

  void build_tables() {
    for (std::size_t f = 0; f < tables.size(); ++f)
      tables[f].build(static_cast<float>(std::exp(hyper.log_length[f])), hyper.share());
  }
  double noise() const { return std::exp(hyper.log_noise); }

  // Kernel between one observation and the whole pool.
  Vector kernel_row(const std::vector<std::uint16_t>& of) const {
    Vector row = Vector::Ones(static_cast<Eigen::Index>(pool.size()));
    for (std::size_t f = 0; f < tables.size(); ++f) {
      const float* table = tables[f].kernel.data() + of[f] * tables[f].levels.size();
      const std::uint16_t* at = pool_levels[f].data();
      for (Eigen::Index i = 0; i < row.size(); ++i) row[i] *= table[at[i]];
    }
    return row;
  }

  // Extends the factor by observation n, and `whitened` by its row.
  void extend(std::size_t n) {
    const auto size = static_cast<Eigen::Index>(n);
    if (factor.rows() <= size) {
      const Eigen::Index capacity = std::max<Eigen::Index>(64, 2 * size);
      factor.conservativeResize(capacity, capacity);
    }
    Eigen::VectorXd column(size);
    for (Eigen::Index i = 0; i < size; ++i)
      column[i] = kernel(levels[n], levels[static_cast<std::size_t>(i)]);
    if (size > 0) factor.topLeftCorner(size, size).triangularView<Eigen::Lower>().solveInPlace(column);
    factor.row(size).head(size) = column.transpose();
    const double pivot = std::sqrt(std::max(1 + noise() - column.squaredNorm(), 1e-9));
    factor(size, size) = pivot;
    if (pool.empty()) return;

    if (whitened.rows() <= size || whitened.cols() != static_cast<Eigen::Index>(pool.size())) {
      const Eigen::Index capacity = std::max<Eigen::Index>(64, 2 * size);
      whitened.conservativeResize(capacity, static_cast<Eigen::Index>(pool.size()));
    }
    Vector row = kernel_row(levels[n]);
    if (size > 0) row.noalias() -= whitened.topRows(size).transpose() * column.cast<float>();
    row /= static_cast<float>(pivot);
    whitened.row(size) = row.transpose();
    explained += row.cwiseAbs2();
  }

  // From scratch: one factorisation and one blocked solve, far cheaper than extending n times.
  void rebuild() {
    build_tables();
    const auto n = static_cast<Eigen::Index>(observed.size()), m = static_cast<Eigen::Index>(pool.size());
    explained = Vector::Zero(m);
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
    if (m == 0) return;
    whitened.resize(capacity, m);
    for (Eigen::Index i = 0; i < n; ++i)
      whitened.row(i) = kernel_row(levels[static_cast<std::size_t>(i)]).transpose();
    const Eigen::MatrixXf lower = factor.topLeftCorner(n, n).cast<float>();
    auto block = whitened.topRows(n);
    lower.triangularView<Eigen::Lower>().solveInPlace(block);
    explained = block.cwiseAbs2().colwise().sum().transpose();
  }

  // Negative log marginal likelihood of a subset, with the kernel's variance and the mean in closed form,
  // plus priors.
  double loss(const Hyperparameters& h, const std::vector<std::size_t>& subset,
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
        for (std::size_t f = 0; f < scratch.size(); ++f)
          product *= scratch[f].kernel[a[f] * scratch[f].levels.size() + b[f]];
        k(i, j) = product;
      }
      k(i, i) += std::exp(h.log_noise);
    }
    const Eigen::LLT<Eigen::MatrixXd> llt(k);
    if (llt.info() != Eigen::Success) return 1e300;
    const Eigen::VectorXd white_y = llt.matrixL().solve(y);
    const Eigen::VectorXd white_1 = llt.matrixL().solve(Eigen::VectorXd::Ones(n));
    const double mean = white_1.dot(white_y) / white_1.squaredNorm();
    const double variance =
        std::max((white_y - mean * white_1).squaredNorm() / static_cast<double>(n), 1e-12);
    const Eigen::MatrixXd& l = llt.matrixLLT();
    double result = 0.5 * static_cast<double>(n) * std::log(variance) + l.diagonal().array().log().sum();
    for (std::size_t f = 0; f < scratch.size(); ++f) {
      const double z = h.log_length[f] - prior_log_length[f];
      result += 0.5 * z * z;
    }
    const double z = (h.log_noise - std::log(1e-3)) / 1.5, s = (h.share_logit + 1) / 1.5;
    return result + 0.5 * z * z + 0.5 * s * s;
  }
};

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
      next.erase(
          std::unique(next.begin(), next.end(), [](float a, float b) { return std::abs(a - b) < 1e-4f; }),
          next.end());
      sums = std::move(next);
    }
    table.levels = std::move(sums);
    s.tables.push_back(std::move(table));
    std::vector<std::uint16_t>& level_at = s.level_at.emplace_back();
    if (feature.parameters.size() == 1)
      for (const float x : feature.coordinates.front())
        level_at.push_back(s.level_of(s.tables.size() - 1, x));
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
    const bool is_execution =
        std::all_of(feature.parameters.begin(), feature.parameters.end(),
                    [&](std::size_t p) { return space.parameters()[p].kind != ParameterKind::code; });
    if (is_execution) length *= 2;
    s.prior_log_length.push_back(std::log(length));
  }
  s.hyper.log_length = s.prior_log_length;
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
  s.whitened.resize(0, 0);
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

void GaussianProcess::set_values(std::span<const double> values) {
  state_->values = Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
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
  double best_loss = s.loss(best, subset, scratch);
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
  s.hyper = best;
}

void GaussianProcess::refit_pool() { state_->rebuild(); }

void GaussianProcess::predict(std::vector<float>& mean, std::vector<float>& deviation) const {
  const State& s = *state_;
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
  const Vector about = s.whitened.topRows(n).transpose() * residual.cast<float>();
  for (std::size_t i = 0; i < m; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    mean[i] = static_cast<float>(centre) + about[at];
    deviation[i] = static_cast<float>(std::sqrt(variance * std::max(1.0f - s.explained[at], 1e-6f)));
  }
}

std::vector<double> GaussianProcess::whitened_products(const std::vector<std::vector<double>>& columns) const {
  const State& s = *state_;
  const auto n = static_cast<Eigen::Index>(s.observed.size()), width = static_cast<Eigen::Index>(columns.size());
  Eigen::MatrixXd white(n, width + 1);
  for (Eigen::Index c = 0; c < width; ++c)
    white.col(c) = Eigen::Map<const Eigen::VectorXd>(columns[static_cast<std::size_t>(c)].data(), n);
  white.col(width).setOnes();
  s.factor.topLeftCorner(n, n).triangularView<Eigen::Lower>().solveInPlace(white);
  const Eigen::VectorXd ones = white.col(width);
  for (Eigen::Index c = 0; c < width; ++c)
    white.col(c) -= ones.dot(white.col(c)) / ones.squaredNorm() * ones;
  const Eigen::MatrixXd products = white.leftCols(width).transpose() * white.leftCols(width);
  return {products.data(), products.data() + products.size()};
}

}  // namespace ergotune::search
