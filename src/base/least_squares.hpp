// Bounded non-linear least squares: Levenberg-Marquardt (Eigen's) on transformed parameters, from several starting
// points.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace ergotune {

/// A free parameter of a fit, kept inside [low, high] by a change of variable (sine for two bounds, a hyperbola for
/// one, as in MINUIT), so that the solver needs no bounds.
struct FitParameter {
  std::string name;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct LeastSquaresProblem {
  std::vector<FitParameter> parameters;
  /// Number of residuals.
  std::size_t residual_count = 0;
  /// Fills the residuals, each divided by its error, for parameters inside their bounds.
  std::function<void(std::span<const double> parameters, std::span<double> residuals)> residuals;
  /// Starting points; the best result is kept. Points outside the bounds are moved into them.
  std::vector<std::vector<double>> starts;
};

struct LeastSquaresFit {
  /// False if no start led to finite residuals; then the other members are meaningless.
  bool ok = false;
  std::vector<double> parameters;
  /// Sum of squared residuals.
  double cost = 0;
  /// Jacobian of the residuals with respect to the parameters (not the transformed ones), row by row.
  std::vector<double> jacobian;
  /// Inverse of J^T J, row by row; multiply by cost/(residuals - parameters) if the errors are only relative. Rows and
  /// columns of parameters at a bound or without effect are 0.
  std::vector<double> covariance;
  std::vector<bool> at_bound;
  double covariance_at(std::size_t i, std::size_t j) const { return covariance[i * parameters.size() + j]; }
};

/// Does not throw on noisy or degenerate data. Without `with_covariance`, the Jacobian is not computed, which saves
/// time if only the cost matters.
LeastSquaresFit least_squares(const LeastSquaresProblem& problem, bool with_covariance = true);

}  // namespace ergotune
