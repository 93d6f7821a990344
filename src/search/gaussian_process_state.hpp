// What a GaussianProcess holds.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>

#include "search/gaussian_process.hpp"

namespace ergotune::search {
// Shared by the files of the model alone.
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
  std::vector<std::function<float(ConfigurationIndex)>> given;  // features that somebody else knows, after those
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
  Matrix whitened;         // factor^-1 K(observed, pool)
  Vector explained;        // column sums of squares of `whitened`

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

  /// Negative log marginal likelihood of a subset, with the kernel's variance and the mean in closed form, plus priors.
  double loss(const Hyperparameters& h, const std::vector<std::size_t>& subset, std::vector<Table>& scratch) const;
};

}  // namespace ergotune::search
