#include "base/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/NonLinearOptimization>

namespace ergotune {
namespace {

/// Converts between a bounded parameter and the solver's free variable.
class BoundTransform {
 public:
  explicit BoundTransform(const FitParameter& parameter) : low_(parameter.low), high_(parameter.high) {}

  double inside(double free) const {
    if (std::isfinite(low_) && std::isfinite(high_)) return low_ + (high_ - low_) * 0.5 * (std::sin(free) + 1.0);
    if (std::isfinite(low_)) return low_ - 1.0 + std::sqrt(free * free + 1.0);
    if (std::isfinite(high_)) return high_ + 1.0 - std::sqrt(free * free + 1.0);
    return free;
  }
  double free(double value) const {
    if (std::isfinite(low_) && std::isfinite(high_)) {
      if (high_ <= low_) return 0.0;
      // On a bound the slope is zero, and the solver would stay there: start slightly inside.
      const double share = std::clamp((value - low_) / (high_ - low_), 1e-4, 1.0 - 1e-4);
      return std::asin(2.0 * share - 1.0);
    }
    if (std::isfinite(low_)) return hyperbola(value - low_);
    if (std::isfinite(high_)) return hyperbola(high_ - value);
    return value;
  }
  /// Scale for the steps of finite differences and for the test whether a value is at a bound.
  double scale(double value) const {
    if (std::isfinite(low_) && std::isfinite(high_)) return high_ - low_;
    return std::max(std::abs(value), 1e-3);
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  static double hyperbola(double distance) {
    const double d = std::max(distance, 1e-6) + 1.0;
    return std::sqrt(d * d - 1.0);
  }
  double low_, high_;
};

/// Interface for Eigen's solver: residuals and their Jacobian in the free variables, by forward differences.
struct Functor {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const LeastSquaresProblem& problem;
  const std::vector<BoundTransform>& transforms;
  std::vector<double> inside;
  Eigen::VectorXd base, moved;

  int inputs() const { return static_cast<int>(transforms.size()); }
  // The solver needs at least as many residuals as parameters; missing ones are zero.
  int values() const { return static_cast<int>(std::max(problem.residual_count, transforms.size())); }

  int operator()(const Eigen::VectorXd& free, Eigen::VectorXd& out) {
    for (std::size_t i = 0; i < transforms.size(); ++i) inside[i] = transforms[i].inside(free[static_cast<long>(i)]);
    out.setZero();
    problem.residuals(inside, {out.data(), problem.residual_count});
    return out.allFinite() ? 0 : -1;
  }
  int df(const Eigen::VectorXd& free, Eigen::MatrixXd& jacobian) {
    base.resize(values());
    moved.resize(values());
    if ((*this)(free, base) < 0) return -1;
    Eigen::VectorXd at = free;
    for (long i = 0; i < at.size(); ++i) {
      const double step = 1e-7 * std::max(1.0, std::abs(free[i]));
      at[i] = free[i] + step;
      if ((*this)(at, moved) < 0) return -1;
      jacobian.col(i) = (moved - base) / step;
      at[i] = free[i];
    }
    return 0;
  }
};

void add_covariance(LeastSquaresFit& fit, const LeastSquaresProblem& problem,
                    const std::vector<BoundTransform>& transforms) {
  const auto inputs = static_cast<long>(transforms.size());
  const auto values = static_cast<long>(problem.residual_count);
  Eigen::MatrixXd jacobian(values, inputs);
  Eigen::VectorXd low(values), high(values);
  fit.at_bound.assign(transforms.size(), false);
  std::vector<double> at = fit.parameters;
  for (long i = 0; i < inputs; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double scale = transforms[k].scale(at[k]);
    const double value = fit.parameters[k];
    fit.at_bound[k] = value - transforms[k].low() < 1e-6 * scale || transforms[k].high() - value < 1e-6 * scale;
    const double step = 1e-6 * scale;
    const double below = std::max(value - step, transforms[k].low());
    const double above = std::min(value + step, transforms[k].high());
    at[k] = below;
    problem.residuals(at, {low.data(), problem.residual_count});
    at[k] = above;
    problem.residuals(at, {high.data(), problem.residual_count});
    at[k] = value;
    jacobian.col(i) = above > below ? Eigen::VectorXd((high - low) / (above - below)) : Eigen::VectorXd::Zero(values);
  }
  fit.jacobian.resize(static_cast<std::size_t>(values * inputs));
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(fit.jacobian.data(), values,
                                                                                     inputs) = jacobian;
  // Parameters at a bound, or without effect on any residual, carry no information: left out of the inverse.
  Eigen::VectorXd column_scale = Eigen::VectorXd::Zero(inputs);
  for (long i = 0; i < inputs; ++i) {
    if (fit.at_bound[static_cast<std::size_t>(i)]) jacobian.col(i).setZero();
    const double norm = jacobian.col(i).norm();
    if (norm > 0 && std::isfinite(norm)) {
      column_scale[i] = 1.0 / norm;
      jacobian.col(i) /= norm;
    } else {
      jacobian.col(i).setZero();
    }
  }
  const Eigen::MatrixXd inverse =
      Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd>(jacobian.transpose() * jacobian).pseudoInverse();
  fit.covariance.resize(static_cast<std::size_t>(inputs * inputs));
  for (long i = 0; i < inputs; ++i) {
    for (long j = 0; j < inputs; ++j) {
      fit.covariance[static_cast<std::size_t>(i * inputs + j)] = inverse(i, j) * column_scale[i] * column_scale[j];
    }
  }
}

}  // namespace

LeastSquaresFit least_squares(const LeastSquaresProblem& problem, bool with_covariance) {
  std::vector<BoundTransform> transforms(problem.parameters.begin(), problem.parameters.end());
  LeastSquaresFit best;
  best.cost = std::numeric_limits<double>::infinity();

  Functor functor{problem, transforms, std::vector<double>(transforms.size()), {}, {}};
  Eigen::VectorXd residuals(functor.values());
  const auto consider = [&](const Eigen::VectorXd& free) {
    if (functor(free, residuals) < 0) return;
    const double cost = residuals.squaredNorm();
    if (cost >= best.cost) return;
    best.ok = true;
    best.cost = cost;
    best.parameters = functor.inside;
  };

  for (const std::vector<double>& start : problem.starts) {
    Eigen::VectorXd free(static_cast<long>(transforms.size()));
    for (std::size_t i = 0; i < transforms.size(); ++i) free[static_cast<long>(i)] = transforms[i].free(start[i]);
    if (functor(free, residuals) < 0) continue;
    consider(free);
    if (transforms.empty()) break;
    Eigen::LevenbergMarquardt<Functor> solver(functor);
    solver.parameters.maxfev = 200;
    solver.parameters.ftol = solver.parameters.xtol = 1e-10;
    solver.minimize(free);
    if (free.allFinite()) consider(free);
  }
  if (best.ok && with_covariance) add_covariance(best, problem, transforms);
  return best;
}

}  // namespace ergotune
