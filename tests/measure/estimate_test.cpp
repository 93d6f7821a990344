#include "measure/timing/timing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/statistics.hpp"
#include "ergotune/random.hpp"
#include "ergotune/result.hpp"

namespace ergotune {
namespace {

/// How often the 95 % interval covers the true mean of a sequence.
template <class Draw>
double coverage(std::size_t samples, Draw draw) {
  Random random(11);
  int covered = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> x = draw(samples, random);
    const TimeEstimate estimate = estimate_time(x);
    covered += std::abs(estimate.value - 1.0) <= estimate.relative_half_width * estimate.value;
  }
  return static_cast<double>(covered) / kRuns;
}

TEST(Estimate, IntervalCoversTheTruth) {
  const auto normal = [](std::size_t n, Random& random) {
    std::vector<double> x(n);
    for (double& value : x) value = 1 + 0.02 * random.normal();
    return x;
  };
  for (const std::size_t n : {5u, 7u, 20u, 100u}) {
    const double covered = coverage(n, normal);
    EXPECT_GT(covered, 0.91) << n;
    EXPECT_LT(covered, 0.99) << n;
  }
}

TEST(Estimate, IntervalCoversTheTruthWhereNeighboursAreCorrelated) {
  const auto drifting = [](std::size_t n, Random& random) {
    std::vector<double> x(n);
    double state = random.normal();
    for (double& value : x) {
      state = 0.6 * state + 0.8 * random.normal();
      value = 1 + 0.02 * state;
    }
    return x;
  };
  EXPECT_GT(coverage(200, drifting), 0.90);
}

TEST(Estimate, DisturbedSamplesMoveNothing) {
  Random random(3);
  std::vector<double> x(50);
  for (double& value : x) value = 1e-3 * (1 + 0.002 * random.normal());
  const TimeEstimate clean = estimate_time(x);
  for (std::size_t i = 0; i < 5; ++i) x[i * 9] *= 20;
  const TimeEstimate disturbed = estimate_time(x);
  EXPECT_NEAR(disturbed.value, clean.value, 1e-6);
  EXPECT_LT(disturbed.relative_half_width, 0.01);
}

TEST(Estimate, OneSampleIsNoInterval) {
  EXPECT_TRUE(std::isinf(estimate_time(std::vector<double>{1.0}).relative_half_width));
  EXPECT_TRUE(std::isinf(estimate_time({}).relative_half_width));
  EXPECT_EQ(estimate_time(std::vector<double>{2.0, 2.0, 2.0}).relative_half_width, 0);
}

// What is printed, stored and drawn is the interval that convergence is judged by.
TEST(EstimateTime, TheIntervalOfTheQuantityIsTheOneThatIsJudged) {
  for (const std::vector<double>& samples :
       {std::vector<double>{1, 1.2, 1.1}, {1, 1.2, 1.1, 1.3, 1.05, 1.15, 1.0, 1.1, 1.12, 1.31}}) {
    const TimeEstimate estimate = estimate_time(samples);
    Quantity quantity{estimate.value, estimate.standard_error, 3, {}, {}, Provenance::measured, estimate.degrees};
    EXPECT_DOUBLE_EQ(quantity.half_width(), estimate.relative_half_width * estimate.value);
  }
  const Quantity three{1.1, 0.1 / std::sqrt(3.0), 3, {}, {}, Provenance::measured, 2};
  EXPECT_NEAR(three.half_width(), 4.3027 * 0.1 / std::sqrt(3.0), 1e-4);
  const Quantity known{1.1, 0.1, 3};
  EXPECT_NEAR(known.half_width(), 0.19600, 1e-5);
}

}  // namespace
}  // namespace ergotune
