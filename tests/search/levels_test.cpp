// Parameters of so many values that a table of what each has to do with each would fill the memory.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/gaussian_process.hpp"

namespace ergotune::search {
namespace {

using namespace search_tests;

struct Learnt {
  std::vector<float> mean, deviation;
  GaussianProcess::Scales scales;
};

/// What is learnt of seven values and said of six, each so many positions apart from the next.
Learnt learn(const SearchSpace& space, ConfigurationIndex apart) {
  GaussianProcess model(space);
  std::vector<double> values;
  for (const ConfigurationIndex place : {0, 12, 30, 31, 60, 84, 99}) {
    model.observe(apart * place);
    values.push_back(std::sin(0.05 * static_cast<double>(place)));
  }
  std::vector<ConfigurationIndex> pool;
  for (const ConfigurationIndex place : {0, 6, 33, 59, 71, 98}) pool.push_back(apart * place);
  model.set_values(values);
  model.fit();
  model.set_pool(std::move(pool));
  Learnt learnt;
  model.predict(learnt.mean, learnt.deviation);
  learnt.scales = model.scales();
  return learnt;
}

void expect_same(const Learnt& found, const Learnt& expected, double within) {
  ASSERT_EQ(found.mean.size(), expected.mean.size());
  for (std::size_t i = 0; i < found.mean.size(); ++i) {
    EXPECT_NEAR(found.mean[i], expected.mean[i], within) << i;
    EXPECT_NEAR(found.deviation[i], expected.deviation[i], within) << i;
  }
  ASSERT_EQ(found.scales.log_length.size(), 1u);
  EXPECT_NEAR(found.scales.log_length[0], expected.scales.log_length[0], 1e-9);
  EXPECT_NEAR(found.scales.log_noise, expected.scales.log_noise, 1e-9);
}

/// From 0 to 99, in so many steps from each whole number to the next.
SearchSpace steps(int between) {
  std::vector<Value> values;
  for (int i = 0; i <= 99 * between; ++i) values.emplace_back(static_cast<double>(i) / between);
  return SearchSpace::build({parameter("x", values)}, {});
}

SearchSpace words(int count) {
  std::vector<Value> values;
  for (int i = 0; i < count; ++i) values.emplace_back("word" + std::to_string(i));
  return SearchSpace::build({parameter("x", values)}, {});
}

// 20,000 values had a table of 400 MB, and a fit of the model took minutes.
TEST(Levels, OfTwentyThousandValuesTellWhatThoseOfAHundredTell) {
  const Learnt few = learn(steps(1), 1);
  EXPECT_NEAR(few.mean[0], 0, 0.05) << "it was there";
  EXPECT_LT(few.deviation[0], few.deviation[1]);
  expect_same(learn(steps(200), 200), few,
              2e-3);  // neighbours share a level: they lie 10^-4 of the span apart
  expect_same(learn(steps(6), 6), few, 1e-4);
}

TEST(Levels, OfTwentyThousandTextsTellWhatThoseOfAHundredTell) {
  expect_same(learn(words(20'000), 1), learn(words(100), 1), 1e-6);
}

TEST(Levels, OfTwentyThousandValuesDoNotHoldUpASearch) {
  const SearchSpace space = steps(200);
  for (const char* name : {"auto", "bayesian_pareto", "bayesian_forest"}) {
    StrategyContext context;
    context.space = &space;
    const auto strategy = make_strategy(name, context);
    double best = 1e300;
    for (int i = 0; i < 25; ++i)
      for (const ConfigurationIndex index : strategy->ask(1)) {
        const double value = 1 + std::abs(space.configuration(index)[0].as_real() - 40);
        best = std::min(best, value);
        strategy->tell(index, success(value));
      }
    EXPECT_LT(best, 4) << name;
  }
}

}  // namespace
}  // namespace ergotune::search
