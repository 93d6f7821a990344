// What a session makes of noise, of bounds, of earlier results, and when it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "ergotune/random.hpp"
#include "tune/fake_evaluator.hpp"
#include "tune/ledger/strategy_source.hpp"
#include "tune/scheduled_evaluator.hpp"
#include "tune/session/session.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {
namespace {

using test::FakeEvaluator;
using test::timed;
using ::testing::HasSubstr;

SearchSpace make_space(int x, int y) {
  std::vector<Parameter> parameters(2);
  parameters[0].name = "x";
  for (int i = 1; i <= x; ++i) parameters[0].values.emplace_back(i);
  parameters[1].name = "y";
  for (int i = 1; i <= y; ++i) parameters[1].values.emplace_back(i);
  return SearchSpace::build(parameters, {});
}

/// 5 % between the best and the next ones, much more further away.
double truth(const Configuration& c) {
  const double x = c[0].as_real() - 12, y = c[1].as_real() - 7;
  return 1e-3 * (1 + 0.03 * std::abs(x) + 0.02 * std::abs(y));
}

// Four configurations that differ by less than the noise, among few or many others.
TEST(Choice, IsNotRepeatedForLongerThanTheSearchTook) {
  const auto repeats = [](int others) {
    const SearchSpace space = make_space(4 + others, 1);
    Random random(3);
    test::ScheduledEvaluator evaluator(4);
    evaluator.compile_seconds = 0;
    evaluator.time_seconds = 0.1;
    evaluator.measure = [&](const Configuration& c) {
      const double value = (c[0].as_real() > 4 ? 2e-3 : 1e-3) * (1 + 0.03 * random.normal());
      return timed(value, 0.03 * value);
    };
    Objective objective = Objective::parse({}, {});
    return run_session(space, objective, evaluator, nullptr, 0, {}).best.front().rounds;
  };
  EXPECT_EQ(repeats(0), 3);
  EXPECT_GT(repeats(100), 3);
}

TEST(Choice, UnderNoiseLosesLittleAndSaysHowMuch) {
  const SearchSpace space = make_space(24, 16);
  double lost = 0, reported = 0, lost_without = 0;
  constexpr int kSeeds = 40;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Random random(static_cast<std::uint64_t>(100 + seed));
    FakeEvaluator evaluator;
    evaluator.measure = [&](const Configuration& c, int) {
      const double value = truth(c) * (1 + 0.05 * random.normal());
      return timed(value, 0.05 * value);
    };
    SessionOptions options;
    options.strategy = "random";
    options.seed = static_cast<std::uint64_t>(seed);
    options.budget.evaluations = 240;
    Objective objective = Objective::parse({}, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    double best = 1e300, luckiest = 1e300, unconfirmed = 0;
    std::map<ConfigurationIndex, double> first;
    for (const auto& request : evaluator.requests)
      if (!request.repeat) best = std::min(best, truth(request.configuration));
    lost += truth(space.configuration(result.best.front().index)) / best - 1;
    ASSERT_TRUE(result.expected_loss);
    reported += *result.expected_loss;

    options.confirm = false;
    Objective again = Objective::parse({}, {});
    const SessionResult bare = run_session(space, again, evaluator, nullptr, 0, options);
    for (const ConfigurationResult& entry : bare.best) {
      const double value = *entry.measurement.value("time");
      if (value >= luckiest) continue;
      luckiest = value;
      unconfirmed = truth(space.configuration(entry.index));
    }
    lost_without += unconfirmed / best - 1;
  }
  EXPECT_LT(lost / kSeeds, 0.02);
  EXPECT_LT(lost, 0.6 * lost_without);
  EXPECT_LT(reported / kSeeds, 0.02);
  EXPECT_GT(reported, 0);
}

TEST(Racing, FollowsAMetricBackToTheTime) {
  const SearchSpace space = make_space(8, 8);
  Problem problem;
  Metric metric;
  metric.name = "rate";
  metric.expression = Expression::parse("x * 6.0 / time");
  problem.metrics.push_back(metric);
  ObjectiveSpec spec;
  spec.text = "rate";
  spec.direction = Direction::maximise;
  const Objective objective = Objective::parse(spec, problem.metrics);
  // the leader: x = 2 in 1 ms, a rate of 12,000; its interval reaches down to 10,000
  Measurement leader = timed(1e-3);
  leader.metrics["rate"] = 12000;
  const auto index = [&](int x) {
    Configuration c;
    c.emplace_back(x);
    c.emplace_back(1);
    return *space.index_of(c);
  };
  const auto bound = [&](int x) {
    return race_bound(objective, &problem, {}, space, index(x), {&leader, -12000, 2000});
  };
  EXPECT_EQ(bound(2).quantity, "time");
  EXPECT_NEAR(bound(2).above, 1.2e-3, 1e-9);
  EXPECT_NEAR(bound(8).above, 4.8e-3, 1e-8) << "each configuration has its own";
  // an objective that prefers more time is raced by nobody
  spec.direction = Direction::minimise;
  const Objective slow = Objective::parse(spec, problem.metrics);
  EXPECT_EQ(race_bound(slow, &problem, {}, space, index(2), {&leader, 12000, 2000}).above, 1e300);
  const Objective time = Objective::parse({}, {});
  leader.quantities["time"].standard_error = 1e-5;
  EXPECT_NEAR(race_bound(time, nullptr, {}, space, index(2), {&leader, 1e-3, 1.96e-5}).above, 1.0196e-3, 1e-9);
}

TEST(EarlyStop, EndsAutoButNotWhoEnumerates) {
  const SearchSpace space = make_space(40, 40);
  const auto evaluated = [&](const std::string& strategy, bool early_stop) {
    FakeEvaluator evaluator;
    evaluator.measure = [](const Configuration& c, int) { return timed(truth(c)); };
    SessionOptions options;
    options.strategy = strategy;
    options.early_stop = early_stop;
    options.confirm = false;
    options.budget.evaluations = 300;
    Objective objective = Objective::parse({}, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    if (strategy == "auto" && early_stop) {
      EXPECT_THAT(result.stopped_because, HasSubstr("nothing better is likely"));
      EXPECT_THAT(result.stopped_because, HasSubstr("--no-early-stop"));
      EXPECT_EQ(space.configuration(result.best.front().index)[0], Value(12));
    }
    return result.evaluated;
  };
  const std::uint64_t ended = evaluated("auto", true);
  EXPECT_LT(ended, 200u);
  EXPECT_GE(ended, 150u) << "half of a budget that was given is used";
  EXPECT_EQ(evaluated("auto", false), 300u);
  EXPECT_EQ(evaluated("random", true), 300u);
}

}  // namespace
}  // namespace ergotune
