// Guerreiro's algorithms over ask and tell: the visits and answers of worked examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/strategy.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

Parameter parameter(const std::string& name, std::vector<Value> values, ParameterKind kind = ParameterKind::code) {
  Parameter p;
  p.name = name;
  p.values = std::move(values);
  p.kind = kind;
  return p;
}

using Costs = std::function<double(const Configuration&)>;

/// Drives the strategy to its end; what it visited, as "256 705".
std::vector<std::string> visits(const SearchSpace& space, const Costs& cost, double error = 0,
                                const std::map<std::string, double>& kernel_times = {}, double degrees = 0) {
  StrategyContext context;
  context.space = &space;
  const auto strategy = make_strategy("coordinate", context);
  std::vector<std::string> list;
  while (true) {
    const auto requested = strategy->ask(4);
    if (requested.empty()) return list;
    EXPECT_EQ(requested.size(), 1u);
    const Configuration configuration = space.configuration(requested.front());
    std::string text;
    for (const Value& value : configuration) text += (text.empty() ? "" : " ") + value.to_string();
    list.push_back(text);
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {cost(configuration)};
    if (error > 0) {
      outcome.standard_errors = {error};
      outcome.degrees = {degrees};
    }
    outcome.kernel_times = kernel_times;
    strategy->tell(requested.front(), outcome);
    EXPECT_LE(list.size(), 100u);
    if (list.size() > 100) return list;
  }
}

TEST(Coordinate, OfOneKernelStopsAtTheFirstThatIsWorse) {  // Algorithm 1
  const SearchSpace space = SearchSpace::build({parameter("b", {1024, 512, 256, 128})}, {});
  const auto cost = [](const Configuration& c) { return std::abs(c[0].as_real() - 500); };
  EXPECT_THAT(visits(space, cost), ElementsAre("1024", "512", "256"));
}

TEST(Coordinate, WalksTheClockDownAndThenTheBlock) {  // Algorithm 2; Table IV: lud on the K20c takes 4 runs
  const SearchSpace space = SearchSpace::build(
      {parameter("b", {32, 16}), parameter("core_clock_mhz", {614, 640, 666, 705, 758}, ParameterKind::core_clock_mhz)},
      {});
  const auto cost = [](const Configuration& c) {
    return 10 + std::abs(c[1].as_real() - 700) / 100 + (c[0].as_real() < 20 ? 1 : 0);
  };
  EXPECT_THAT(visits(space, cost), ElementsAre("32 758", "32 705", "32 666", "16 705"));
}

TEST(Coordinate, ABetterBlockLooksAtLowerClocksAgain) {  // Table IV: streamcluster on the K20c takes 7 runs
  const SearchSpace space =
      SearchSpace::build({parameter("b", {1024, 512, 256, 128}),
                          parameter("core_clock_mhz", {614, 640, 666, 705, 758}, ParameterKind::core_clock_mhz)},
                         {});
  const auto cost = [](const Configuration& c) { return c[0].as_real() + std::abs(c[1].as_real() - 700); };
  EXPECT_THAT(visits(space, cost),
              ElementsAre("1024 758", "1024 705", "1024 666", "512 705", "256 705", "128 705", "128 666"));
}

TEST(Coordinate, KernelsComeByTheirTimeAndAChangeBeginsAnew) {  // Algorithm 3; lud with particlefilter: 5 runs of 45
  const SearchSpace space = SearchSpace::build({parameter("pf.b", {512, 256, 128}), parameter("lud.b", {32, 16})}, {});
  const auto cost = [](const Configuration& c) {
    const double pf = std::abs(c[0].as_real() - 256) / 256, lud = c[1].as_real() / 32;
    return 1 + pf + lud;
  };
  EXPECT_THAT(visits(space, cost, 0, {{"lud", 2.0}, {"pf", 1.0}}),
              ElementsAre("512 32", "512 16", "256 16", "128 16", "256 32"));
}

TEST(Coordinate, NoiseDoesNotEndAWalk) {
  const SearchSpace space = SearchSpace::build({parameter("b", {8, 4, 2, 1})}, {});
  // 4 looks worse than 8 by less than the interval
  const auto cost = [](const Configuration& c) { return c[0].as_real() == 4 ? 8.1 : c[0].as_real(); };
  EXPECT_EQ(visits(space, cost).size(), 2u);
  EXPECT_EQ(visits(space, cost, 0.1).size(), 4u);
  EXPECT_EQ(visits(space, cost, 0.03).size(), 2u);
  EXPECT_EQ(visits(space, cost, 0.03, {}, 2).size(), 4u) << "an error that few samples tell";
}

TEST(Coordinate, PassesOverWhatTheSpaceDoesNotAllow) {
  Restriction restriction;
  restriction.expression = Expression::parse("a + b <= 6");
  const SearchSpace space =
      SearchSpace::build({parameter("a", {4, 3, 2, 1}), parameter("b", {4, 3, 2, 1})}, {restriction});
  const auto cost = [](const Configuration& c) { return c[0].as_real() + 2 * c[1].as_real(); };
  const auto list = visits(space, cost);
  EXPECT_EQ(list.front(), "4 2") << "of those nearest to the first values, the first";
  EXPECT_THAT(list, testing::Contains("1 1"));
  EXPECT_LE(list.size(), 10u);
}

TEST(Coordinate, AChangeOfTheFirstIsFollowedByTheNextAndThenByTheClocks) {
  const SearchSpace space = SearchSpace::build({parameter("p", {1, 2}), parameter("q", {1, 2}),
                                                parameter("core_clock_mhz", {600, 700}, ParameterKind::core_clock_mhz)},
                                               {});
  const auto cost = [](const Configuration& c) {
    return 10 - 3 * c[0].as_real() + c[1].as_real() - c[2].as_real() / 100;
  };
  EXPECT_THAT(visits(space, cost), ElementsAre("1 1 700", "1 1 600", "2 1 700", "2 2 700", "2 1 600"));
}

TEST(Coordinate, StartsNearTheHighestClocksWhereTheseAreNotAllowed) {
  Restriction restriction;
  restriction.expression = Expression::parse("core_clock_mhz * b < 1400");
  const SearchSpace space = SearchSpace::build(
      {parameter("b", {2, 1}), parameter("core_clock_mhz", {500, 600, 800, 700}, ParameterKind::core_clock_mhz)},
      {restriction});
  const auto list = visits(space, [](const Configuration& c) { return c[1].as_real(); });
  EXPECT_EQ(list.front(), "1 800") << "one step; 600 MHz with the first block are two";
}

}  // namespace
}  // namespace ergotune
