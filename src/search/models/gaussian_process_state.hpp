// What a GaussianProcess holds.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>

#include "search/models/gaussian_process.hpp"

namespace ergotune::search {
// Shared by the files of the model alone.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// A feature's distinct coordinates, and its kernel between each two of them: looked up where they are few. A table of
// more would take more room than a cache has, and longer to make than the few hundred thousand numbers that are asked
// for.
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
  // factor^-1 K(observed, pool), so many of the pool a block: a block stays in the cache while everything is done with
  // it. An odd number of cache lines, or its rows would contend for the same few.
  static constexpr Eigen::Index kColumns = 496;
  std::vector<Matrix> whitened;
  Vector explained;       // column sums of squares of `whitened`
  Eigen::Index rows = 0;  // that `whitened` has; those of later observations come with the next prediction
  bool stale = true;      // the scales are not those that factor and `whitened` were built with

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

}  // namespace ergotune::search
