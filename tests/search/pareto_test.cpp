#include "search/pareto.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "evaluate/recorded/replay.hpp"
#include "fixtures.hpp"
#include "recorded_data.hpp"
#include "search/objective.hpp"

namespace ergotune {
namespace {

using namespace search_tests;
using Points = std::vector<std::vector<double>>;

TEST(Pareto, FrontLeavesOutTheDominatedAndTwins) {
  const Points points = {{2, 2}, {1, 4}, {4, 1}, {3, 3}, {2, 2}, {1, 5}};
  EXPECT_EQ(pareto_front(points), (std::vector<std::size_t>{1, 0, 2}));
  const Points three = {{1, 2, 3}, {1, 2, 4}, {3, 2, 1}, {2, 2, 2}};
  EXPECT_EQ(pareto_front(three), (std::vector<std::size_t>{0, 3, 2}));
}

TEST(Pareto, HypervolumeByHand) {
  EXPECT_NEAR(hypervolume({{1, 3}, {2, 2}, {3, 1}}, std::vector<double>{4, 4}), 6, 1e-12);
  EXPECT_NEAR(hypervolume({{5, 1}}, std::vector<double>{4, 4}), 0, 1e-12);
  EXPECT_NEAR(hypervolume({{1, 1, 1}}, std::vector<double>{3, 3, 3}), 8, 1e-12);
  // two boxes of 2 x 2 x 1 and 1 x 1 x 2 that share 1 x 1 x 1
  EXPECT_NEAR(hypervolume({{1, 2, 1}, {2, 1, 3}}, std::vector<double>{3, 4, 6}), 20 + 9 - 6, 1e-12);
  EXPECT_NEAR(hypervolume({{1, 1, 2}, {2, 2, 1}}, std::vector<double>{3, 3, 3}), 4 + 2 - 1, 1e-12);
}

Points random_points(Random& random, std::size_t count, std::size_t objectives, std::uint64_t levels) {
  Points points(count, std::vector<double>(objectives));
  for (auto& point : points)
    for (double& v : point) v = static_cast<double>(random.below(levels));
  return points;
}

TEST(Pareto, FrontIsWhatNothingDominatesEachOnce) {
  EXPECT_FALSE(dominates(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
  EXPECT_TRUE(dominates(std::vector<double>{1, 2}, std::vector<double>{1, 3}));
  EXPECT_FALSE(dominates(std::vector<double>{0, 4}, std::vector<double>{1, 3}));
  Random random(8);
  for (int trial = 0; trial < 300; ++trial) {
    const Points points = random_points(random, 1 + random.below(9), 1 + random.below(4), 4);
    std::set<std::vector<double>> expected, found;
    for (const auto& one : points)
      if (std::none_of(points.begin(), points.end(), [&](const auto& other) { return dominates(other, one); }))
        expected.insert(one);
    const auto front = pareto_front(points);
    for (const std::size_t f : front) found.insert(points[f]);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(front.size(), expected.size());
    for (std::size_t i = 1; i < front.size(); ++i) EXPECT_LE(points[front[i - 1]][0], points[front[i]][0]);
    for (const std::size_t f : front) EXPECT_EQ(std::find(points.begin(), points.end(), points[f]) - points.begin(), f);
  }
}

// Inclusion and exclusion: the union of the boxes from each point to the reference.
TEST(Pareto, HypervolumeIsThatOfTheUnionOfBoxes) {
  Random random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t objectives = 1 + random.below(4);
    const Points points = random_points(random, 1 + random.below(5), objectives, 6);
    std::vector<double> reference{4.5, 4.25, 3.75, 4.75};
    reference.resize(objectives);
    double expected = 0;
    for (std::size_t some = 1; some < (std::size_t{1} << points.size()); ++some) {
      double box = -1;  // the sign of inclusion
      for (std::size_t i = 0; i < points.size(); ++i)
        if ((some >> i & 1) != 0) box = -box;
      for (std::size_t o = 0; o < objectives; ++o) {
        double corner = -1;
        for (std::size_t i = 0; i < points.size(); ++i)
          if ((some >> i & 1) != 0) corner = std::max(corner, points[i][o]);
        box *= std::max(0.0, reference[o] - corner);
      }
      expected += box;
    }
    EXPECT_NEAR(hypervolume(points, reference), expected, 1e-9);
  }
  EXPECT_EQ(hypervolume({}, std::vector<double>{4, 4}), 0);
}

// A GPU's trade between time and energy: code parameters rugged, the clock smooth.
struct TradeOff {
  SearchSpace space;
  std::vector<std::vector<double>> values;
};

TradeOff trade_off() {
  std::vector<Value> clocks, blocks;
  for (int i = 0; i < 18; ++i) clocks.push_back(600 + 60 * i);
  for (int i = 1; i <= 16; ++i) blocks.push_back(32 * i);
  Parameter clock = parameter("clock", clocks);
  clock.kind = ParameterKind::core_clock_mhz;
  TradeOff result{SearchSpace::build({parameter("block", blocks), parameter("unroll", {1, 2, 4, 8}),
                                      parameter("vector", {1, 2, 4}), clock},
                                     {restriction("block * vector <= 1024")}),
                  {}};
  for (ConfigurationIndex i = 0; i < result.space.size(); ++i) {
    const Configuration c = result.space.configuration(i);
    const double b = std::log2(c[0].as_real()), u = std::log2(c[1].as_real()), v = std::log2(c[2].as_real());
    const double f = c[3].as_real() / 1000;
    const double work = std::exp(0.25 * std::abs(b - 7.5) + 0.2 * std::abs(u - 2 + 0.5 * v) + 0.1 * std::abs(v - 1));
    const double time = work * (0.4 + 0.6 / f);
    const double power = 40 + 60 / work + 70 * f * std::pow(0.7 + 0.3 * std::max(0.0, f - 0.9) / 0.3, 2);
    result.values.push_back({time, time * power});
  }
  return result;
}

double share_of_front(const std::string& name, std::uint64_t seed) {
  const TradeOff data = trade_off();
  StrategyContext c;
  c.space = &data.space;
  c.seed = seed;
  c.objectives = 2;
  c.budget = data.space.size() / 20;
  const auto strategy = make_strategy(name, c);
  Points seen;
  while (seen.size() < c.budget)
    for (const auto index : strategy->ask(1)) {
      Outcome outcome;
      outcome.ok = true;
      outcome.values = data.values[index];
      strategy->tell(index, outcome);
      seen.push_back(data.values[index]);
    }
  std::vector<double> reference = {0, 0};
  for (const std::size_t f : pareto_front(data.values))
    for (int o = 0; o < 2; ++o) reference[o] = std::max(reference[o], 1.1 * data.values[f][o]);
  return hypervolume(seen, reference) / hypervolume(data.values, reference);
}

TEST(Pareto, BayesianFindsTheFrontWithinATwentiethOfTheSpace) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_GE(share_of_front("bayesian_pareto", seed), 0.98);
    EXPECT_GE(share_of_front("auto", seed), 0.98);
  }
}

// Recorded time and energy of 898 GEMM configurations (Kernel Tuner dashboard, A100).
TEST(Pareto, BayesianFindsTheRecordedFrontOfTheGemm) {
  const ReplayTable table(load_recording(test::recorded_data() / "energy/gemm_A100_898_open.json.gz"));
  ObjectiveSpec spec;
  spec.text = "pareto(time, energy)";
  Objective objective = Objective::parse(spec, {});
  std::vector<Outcome> outcomes;
  Points all;
  std::vector<double> worst = {0, 0};
  for (ConfigurationIndex i = 0; i < table.space().size(); ++i) {
    outcomes.push_back(objective.outcome(table.measurement(i)));
    if (!outcomes.back().ok) continue;
    all.push_back(outcomes.back().values);
    for (std::size_t o = 0; o < 2; ++o) worst[o] = std::max(worst[o], all.back()[o]);
  }
  double mean = 0;
  constexpr int kRuns = 10;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    StrategyContext c;
    c.space = &table.space();
    c.seed = seed;
    c.objectives = 2;
    c.budget = table.space().size() / 20;
    const auto strategy = make_strategy("auto", c);
    Points seen;
    for (std::uint64_t n = 0; n < c.budget; ++n)
      for (const auto index : strategy->ask(1)) {
        strategy->tell(index, outcomes[index]);
        if (outcomes[index].ok) seen.push_back(outcomes[index].values);
      }
    mean += hypervolume(seen, worst) / hypervolume(all, worst) / kRuns;
  }
  EXPECT_GE(mean, 0.98);
}

TEST(Pareto, Nsga2BeatsRandomSampling) {
  double nsga = 0, random = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    nsga += share_of_front("nsga2", seed);
    random += share_of_front("random", seed);
  }
  EXPECT_GT(nsga, random);
}

// Share of the front's volume after 100 evaluations with so many slots, which stay busy; none is requested twice.
double share_with(std::size_t slots) {
  const TradeOff data = trade_off();
  StrategyContext c;
  c.space = &data.space;
  c.objectives = 2;
  const auto strategy = make_strategy("auto", c);
  std::deque<ConfigurationIndex> under_way;
  std::set<ConfigurationIndex> requested;
  Points front, seen;
  while (seen.size() < 100) {
    for (const ConfigurationIndex index : strategy->ask(slots - under_way.size())) {
      EXPECT_TRUE(requested.insert(index).second);
      under_way.push_back(index);
    }
    EXPECT_EQ(under_way.size(), slots) << "after " << seen.size();
    Outcome outcome;
    outcome.ok = true;
    outcome.values = data.values[under_way.front()];
    strategy->tell(under_way.front(), outcome);
    seen.push_back(outcome.values);
    under_way.pop_front();
  }
  std::vector<double> reference = {0, 0};
  for (const std::size_t f : pareto_front(data.values)) front.push_back(data.values[f]);
  for (const auto& p : front)
    for (std::size_t o = 0; o < 2; ++o) reference[o] = std::max(reference[o], 1.1 * p[o]);
  return hypervolume(seen, reference) / hypervolume(front, reference);
}

TEST(Pareto, BatchesKnowWhatIsPending) {
  const double alone = share_with(1), eight = share_with(8);
  EXPECT_GT(alone, 0.9);
  EXPECT_GT(eight, 0.9 * alone);
}

}  // namespace
}  // namespace ergotune
