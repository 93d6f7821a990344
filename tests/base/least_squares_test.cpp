#include "base/least_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/statistics.hpp"
#include "ergotune/random.hpp"

namespace ergotune {
namespace {

TEST(LeastSquares, AStraightLineAgreesWithItsClosedForm) {
  Random random(3);
  std::vector<double> x, y;
  for (int i = 0; i < 12; ++i) {
    x.push_back(i);
    y.push_back(3 + 0.5 * i + 0.1 * random.normal());
  }
  LeastSquaresProblem problem;
  problem.parameters = {{"intercept"}, {"slope"}};
  problem.residual_count = x.size();
  problem.residuals = [&](std::span<const double> p, std::span<double> out) {
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = y[i] - p[0] - p[1] * x[i];
  };
  problem.starts = {{0, 0}};
  const LeastSquaresFit fit = least_squares(problem);
  const LineFit line = fit_line(x, y);
  ASSERT_TRUE(fit.ok);
  EXPECT_NEAR(fit.parameters[0], line.intercept, 1e-6);
  EXPECT_NEAR(fit.parameters[1], line.slope, 1e-6);
  const double variance = fit.cost / 10;
  EXPECT_NEAR(std::sqrt(variance * fit.covariance_at(1, 1)), line.slope_error, 1e-5);
  EXPECT_NEAR(std::sqrt(variance * fit.covariance_at(0, 0)), line.intercept_error, 1e-5);
}

TEST(LeastSquares, StaysInsideItsBoundsAndSaysSo) {
  LeastSquaresProblem problem;
  problem.parameters = {{"a", 0, 2}, {"b", 1, std::numeric_limits<double>::infinity()}};
  problem.residual_count = 2;
  problem.residuals = [](std::span<const double> p, std::span<double> out) {
    EXPECT_GE(p[0], 0);
    EXPECT_LE(p[0], 2);
    EXPECT_GE(p[1], 1);
    out[0] = p[0] - 5;
    out[1] = p[1] - 1.5;
  };
  problem.starts = {{1, 3}, {-7, 0}};
  const LeastSquaresFit fit = least_squares(problem);
  ASSERT_TRUE(fit.ok);
  EXPECT_NEAR(fit.parameters[0], 2, 1e-5);
  EXPECT_NEAR(fit.parameters[1], 1.5, 1e-5);
  EXPECT_TRUE(fit.at_bound[0]);
  EXPECT_FALSE(fit.at_bound[1]);
}

TEST(LeastSquares, SeveralStartsEscapeALocalMinimum) {
  LeastSquaresProblem problem;
  problem.parameters = {{"x", -4, 4}};
  problem.residual_count = 2;
  // Two valleys: the one near 2 ends at 0, the one near -2 at 1.
  problem.residuals = [](std::span<const double> p, std::span<double> out) {
    out[0] = p[0] * p[0] - 4;
    out[1] = 0.25 * (p[0] - 2);
  };
  problem.starts = {{-3}};
  EXPECT_LT(least_squares(problem).parameters[0], 0);
  problem.starts = {{-3}, {3}};
  EXPECT_NEAR(least_squares(problem).parameters[0], 2, 1e-6);
}

TEST(LeastSquares, FewerResidualsThanParametersOrNonsenseNeverThrow) {
  LeastSquaresProblem problem;
  problem.parameters = {{"a"}, {"b"}};
  problem.residual_count = 1;
  problem.residuals = [](std::span<const double> p, std::span<double> out) { out[0] = p[0] + p[1] - 1; };
  problem.starts = {{0, 0}};
  const LeastSquaresFit fit = least_squares(problem);
  ASSERT_TRUE(fit.ok);
  EXPECT_NEAR(fit.parameters[0] + fit.parameters[1], 1, 1e-6);
  problem.residuals = [](std::span<const double>, std::span<double> out) { out[0] = std::nan(""); };
  EXPECT_FALSE(least_squares(problem).ok);
}

}  // namespace
}  // namespace ergotune
