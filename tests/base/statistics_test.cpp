#include "base/statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

TEST(Statistics, StudentQuantilesMatchTables) {
  EXPECT_NEAR(f_tail(99, 2, 2), 0.01, 1e-9);
  EXPECT_NEAR(f_tail(4.964603, 1, 10), 0.05, 1e-6);
  EXPECT_EQ(f_tail(0, 3, 5), 1);
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.77645, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.95, 10), 1.81246, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.025, 30), -2.04227, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 1e9), 1.95996, 1e-4);
  for (const auto& [degrees, quantile] :
       {std::pair(4.0, 2.77645), {4.0, 2.77645}, {0.0, 1.95996}, {1.0, 12.7062}, {NAN, 1.95996}})
    EXPECT_NEAR(half_width_95(0.5, degrees), 0.5 * quantile, 1e-4);
}

TEST(Statistics, NormalQuantileInvertsTheDistribution) {
  for (double p : {1e-6, 0.01, 0.3, 0.5, 0.9, 0.999}) EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-12);
}

TEST(Statistics, RunningAgreesWithTwoPasses) {
  Random random(7);
  std::vector<double> x;
  RunningStatistics running;
  for (int i = 0; i < 100; ++i) {
    x.push_back(1e6 + random.normal());
    running.add(x.back());
  }
  EXPECT_NEAR(running.mean(), mean(x), 1e-6);
  EXPECT_NEAR(running.variance(), variance(x), 1e-6);
}

TEST(Statistics, TheIntervalOfTheMeanCoversTheTruth) {
  Random random(3);
  int covered = 0;
  for (int run = 0; run < 2000; ++run) {
    RunningStatistics s;
    for (int i = 0; i < 6; ++i) s.add(5 + random.normal());
    if (std::abs(s.mean() - 5) <= half_width_95(s.standard_error(), 5)) ++covered;
  }
  EXPECT_GT(covered, 1860);
  EXPECT_LT(covered, 1940);
}

TEST(Statistics, TheIntervalOfARatioCoversTheTruth) {
  Random random(7);
  const double a = 10, b = 4;
  const int samples = 5, runs = 4000;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    RunningStatistics of_a, of_b;
    for (int i = 0; i < samples; ++i)
      of_a.add(a * (1 + 0.02 * random.normal())), of_b.add(b * (1 + 0.02 * random.normal()));
    const auto half = [](const RunningStatistics& s) { return half_width_95(s.standard_error(), samples - 1); };
    const double ratio = of_a.mean() / of_b.mean();
    covered += std::abs(ratio - a / b) <= ratio * ratio_half_width(of_a.mean(), half(of_a), of_b.mean(), half(of_b));
  }
  EXPECT_GT(covered, 0.95 * runs) << "of both sides alike small samples it is a little wider than needed";
  EXPECT_LT(covered, 0.99 * runs) << "and not much";
  EXPECT_EQ(ratio_half_width(a, 0, b, 1), 0) << "unknown";
  EXPECT_EQ(ratio_half_width(a, 1, b, b), 0) << "so wide that it holds zero";
  EXPECT_EQ(ratio_half_width(a, 1, b, INFINITY), 0);
}

TEST(Statistics, QuantileInterpolatesAndRefusesNothing) {
  const std::vector<double> x = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(x), 2.5);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 4);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(Statistics, LineFitGivesSlopeAndItsError) {
  std::vector<double> x, y;
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    x.push_back(i);
    y.push_back(3 + 0.5 * i + random.normal());
  }
  const LineFit fit = fit_line(x, y);
  EXPECT_NEAR(fit.slope, 0.5, 4 * fit.slope_error);
  EXPECT_NEAR(fit.slope_error, 1 / std::sqrt(200 * 200.0 * 200 / 12), 2e-4);
  EXPECT_NEAR(fit.residual_deviation, 1, 0.15);
}

TEST(Random, IsTheSameEverywhere) {
  Random random(1);
  const std::uint64_t first = random();
  Random again(1);
  EXPECT_EQ(again(), first);
  EXPECT_EQ(first, 14971601782005023387ull);  // so that a change of the generator is noticed: seeds are promises
}

TEST(Random, BelowIsUniform) {
  Random random(5);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (int c : counts) EXPECT_NEAR(c, 10000, 500);
}

}  // namespace
}  // namespace ergotune
