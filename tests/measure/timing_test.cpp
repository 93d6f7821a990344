// How many rounds are timed, and how they are put together, on a device whose rounds take what a test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/statistics.hpp"
#include "ergotune/random.hpp"
#include "ergotune/result.hpp"
#include "measure/fake_device.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {
namespace {

/// Rounds that take what a list says, the last one over and over.
struct Rounds : Workload {
  test::FakeDevice& device;
  std::vector<double> seconds;
  std::size_t at = 0, launches = 0;
  Rounds(test::FakeDevice& d, std::vector<double> s) : device(d), seconds(std::move(s)) {}
  void launch(std::size_t rounds) override {
    for (std::size_t i = 0; i < rounds; ++i, ++launches) device.now += seconds[std::min(at++, seconds.size() - 1)];
  }
};

/// Seconds that change from round to round: no interval of them is narrow.
std::vector<double> swinging(double low, double high) {
  std::vector<double> seconds;
  for (int i = 0; i < 2000; ++i) seconds.push_back(i % 2 == 0 ? low : high);
  return seconds;
}

struct Timing : testing::Test {
  test::FakeDevice device;
  MeasureOptions options;
  TimingResult measure(Rounds& rounds, double expected, double give_up_above = 1e300) {
    Timer timer(device, options);
    return timer.measure(rounds, expected, give_up_above, {}, nullptr);
  }
};

TEST_F(Timing, ShortRoundsShareASample) {
  options.min_sample_seconds = 1e-4;
  Rounds rounds(device, {3e-6});
  auto result = measure(rounds, 3e-6);
  EXPECT_EQ(result.launches_per_sample, 34u) << "1e-4 / 3e-6, rounded up";
  EXPECT_NEAR(result.estimate.value, 3e-6, 1e-15);
  EXPECT_EQ(rounds.launches, 34 * result.samples.size());
  EXPECT_EQ(measure(rounds, 1e-4).launches_per_sample, 1u);
  EXPECT_EQ(measure(rounds, 0).launches_per_sample, 20000u) << "never more";
  options.cold_cache = true;
  EXPECT_EQ(measure(rounds, 3e-6).launches_per_sample, 1u);
}

/// Rounds of one length on a device with graphs, where each queued launch or graph takes a while to begin.
struct Graphed : Rounds {
  double single, graph;
  std::size_t taken_down = 0;
  Graphed(test::FakeDevice& d, double seconds, double s, double g) : Rounds(d, {seconds}), single(s), graph(g) {}
  bool prepare(std::size_t rounds) override {
    taken_down = rounds;
    return rounds > 0;
  }
  void launch(std::size_t rounds) override {
    for (; taken_down > 0 && rounds >= taken_down; rounds -= taken_down) {
      device.now += graph;
      Rounds::launch(taken_down);
    }
    for (; rounds > 0; --rounds) {
      device.now += single;
      Rounds::launch(1);
    }
  }
};

TEST_F(Timing, WhatEventsAndBeginningsAddIsLeftOut) {
  for (const double seconds : {5e-6, 4e-5, 1.4e-4, 2.8e-4, 7e-4, 3e-3}) {
    for (const bool cold : {false, true}) {
      options.cold_cache = cold;
      Graphed rounds(device, seconds, 3.8e-6, 5e-6);
      const auto result = measure(rounds, seconds);
      EXPECT_NEAR(result.estimate.value, seconds, 1e-4 * seconds) << seconds << (cold ? " cold" : "");
      EXPECT_NEAR(result.overhead, result.launches_per_sample > 1 ? 5e-6 : 3.8e-6, 1e-9);
    }
  }
  options.cold_cache = false;
  Graphed slow(device, 0.02, 3.8e-6, 5e-6);
  measure(slow, 0.02);
  EXPECT_EQ(slow.launches, 7u) << "of long kernels it does not matter";
}

TEST_F(Timing, ObserversDoNotLengthenWhatTheyWatch) {
  Graphed rounds(device, 4e-5, 9e-6, 1e-5);
  const RepetitionHooks hooks{[] {}, [] {}, [] {}};
  Timer timer(device, options);
  EXPECT_NEAR(timer.measure(rounds, 4e-5, 1e300, {}, &hooks).estimate.value, 4e-5, 1e-8);
}

TEST_F(Timing, BeginsWithTheLeastAndEndsWithTheMost) {
  options.min_repeats = 5;
  options.max_repeats = 40;
  options.max_seconds = 100;
  options.precision = 0.01;
  Rounds steady(device, {1e-3});
  EXPECT_EQ(measure(steady, 1e-3).samples.size(), 5u);
  const std::vector<double> wild = swinging(1e-3, 3e-3);
  Rounds rounds(device, wild);
  const auto result = measure(rounds, 2e-3);
  EXPECT_EQ(result.samples.size(), 40u);
  EXPECT_FALSE(result.converged);
  options.max_repeats = 1;
  options.min_repeats = 1;
  Rounds two(device, wild);
  EXPECT_EQ(measure(two, 2e-3).samples.size(), 2u) << "one sample has no interval";
}

TEST_F(Timing, EndsWithItsTime) {
  options.min_repeats = 7;
  options.max_repeats = 1000;
  options.max_seconds = 1;
  Rounds rounds(device, swinging(0.01, 0.03));
  const auto result = measure(rounds, 0.02);
  EXPECT_GE(result.samples.size(), 50u);
  EXPECT_LE(result.samples.size(), 53u) << "20 ms each, a second in all";
  Rounds slow(device, {0.5});
  EXPECT_EQ(measure(slow, 0.5).samples.size(), 3u) << "a first look at what is slow";
}

TEST_F(Timing, GivesUpWhatLosesForSure) {
  options.min_repeats = 10;
  const std::vector<double> wild = swinging(1e-3, 3e-3);
  Rounds rounds(device, wild);
  const auto result = measure(rounds, 2e-3, 1e-4);
  EXPECT_TRUE(result.gave_up);
  EXPECT_EQ(result.samples.size(), 10u);
  Rounds close(device, wild);
  EXPECT_FALSE(measure(close, 2e-3, 1.99e-3).gave_up);
}

TEST_F(Timing, ThreeSamplesShowThatALoserLoses) {
  options.min_repeats = 7;
  Rounds steady(device, {2e-3});
  const auto loser = measure(steady, 2e-3, 1e-3);
  EXPECT_TRUE(loser.gave_up);
  EXPECT_EQ(loser.samples.size(), 3u);
  // a single launch that was disturbed decides nothing
  Rounds good(device, {1e-3});
  const auto kept = measure(good, 2e-3, 1.1e-3);
  EXPECT_FALSE(kept.gave_up);
  EXPECT_EQ(kept.samples.size(), 7u);
}

TEST_F(Timing, TheIntervalOfAGpuHoldsForOtherProcesses) {
  Rounds steady(device, {1e-3});
  const TimeEstimate gpu = measure(steady, 1e-3).estimate;
  EXPECT_GT(gpu.relative_half_width, 0.003) << "equal samples do not show what differs between processes";
  EXPECT_NEAR(gpu.standard_error, gpu.relative_half_width / 1.96 * gpu.value, 1e-9);
  device.device_info.is_cpu = true;
  EXPECT_EQ(measure(steady, 1e-3).estimate.relative_half_width, 0) << "samples of a CPU show what differs";
}

TEST_F(Timing, WhatIsShortIsTimedInSamplesThatAreLongEnough) {
  Graphed rounds(device, 5e-6, 3.8e-6, 5e-6);
  const auto result = measure(rounds, 1.5e-5);  // a launch by itself takes three times as long
  EXPECT_GE(static_cast<double>(result.launches_per_sample) * 5e-6, 2.9e-4);
}

TEST_F(Timing, ASampleIsOneLaunchWhereInputsAreResetBeforeEach) {
  for (const bool cold : {false, true}) {
    options.cold_cache = cold;
    std::size_t resets = 0;
    Rounds rounds(device, {5e-6});  // of a device without graphs
    Timer timer(device, options);
    const auto result = timer.measure(rounds, 5e-6, 1e300, {[&] { ++resets, device.now += 1; }, true}, nullptr);
    EXPECT_EQ(resets, result.samples.size());
    EXPECT_EQ(result.launches_per_sample, 1u);
    EXPECT_NEAR(result.estimate.value, 5e-6, 1e-12) << "resets are not part of the time";
  }
}

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
