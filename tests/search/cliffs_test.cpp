// The default strategy where it is hard: spaces drawn by the generator of the benchmark.
#include <gtest/gtest.h>

#include "../../bench/search/cliffs.hpp"
#include "ergotune/strategy.hpp"

namespace ergotune {
namespace {

TEST(Cliffs, AreTheSameForASeedAndAsTheyWereRequestedFor) {
  cliffs::Options options;
  options.seed = 5;
  options.failing = 0.5;
  options.largest = 2e4;
  const cliffs::Space first(options), second(options);
  ASSERT_EQ(first.space().size(), second.space().size());
  for (ConfigurationIndex i = 0; i < first.space().size(); ++i) ASSERT_EQ(first.value(i), second.value(i));
  EXPECT_NEAR(first.failing(), 0.5, 0.15);
  std::size_t idle = 0;
  for (std::size_t p = 0; p < first.space().dimensions(); ++p) idle += first.idle(p) ? 1 : 0;
  EXPECT_EQ(idle, options.idle);
  EXPECT_GT(first.worst(), first.optimum());
}

double mean_loss(const cliffs::Space& cliffs, const std::string& name, int evaluations) {
  constexpr int kSeeds = 3;
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    StrategyContext context;
    context.space = &cliffs.space();
    context.seed = seed;
    const auto strategy = make_strategy(name, context);
    double best = cliffs.worst();
    for (int n = 0; n < evaluations; ++n) {
      const ConfigurationIndex index = strategy->ask(1).at(0);
      Outcome outcome;
      outcome.ok = std::isfinite(cliffs.value(index));
      if (outcome.ok) outcome.values = {cliffs.value(index)};
      best = std::min(best, cliffs.value(index));
      strategy->tell(index, outcome);
    }
    sum += best / cliffs.optimum() - 1;
  }
  return sum / kSeeds;
}

TEST(Cliffs, AutoIsAheadOfRandomBesideFailuresAndAmongIdleParameters) {
  double searched = 0, random = 0;
  for (const std::uint64_t seed : {8, 9, 12}) {
    const cliffs::Space space(cliffs::draw_options(seed));
    searched += mean_loss(space, "auto", 100);
    random += mean_loss(space, "random", 100);
  }
  EXPECT_LT(searched, random / 2);
}

// More than half of these spaces fail, and evolution leaves their first basin.
TEST(Cliffs, AutoIsNotBehindEvolutionWhereMostFail) {
  double searched = 0, evolved = 0;
  for (const std::uint64_t seed : {3, 4, 7}) {
    const cliffs::Space space(cliffs::draw_options(seed));
    searched += mean_loss(space, "auto", 100);
    evolved += mean_loss(space, "genetic", 100);
  }
  EXPECT_LT(searched, evolved);
}

}  // namespace
}  // namespace ergotune
