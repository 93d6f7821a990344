// Parameters of so many values that a table of what each has to do with each would fill the memory.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune::search {
namespace {

using namespace search_tests;

/// From 0 to 99, in so many steps from each whole number to the next.
SearchSpace steps(int between) {
  std::vector<Value> values;
  for (int i = 0; i <= 99 * between; ++i) values.emplace_back(static_cast<double>(i) / between);
  return SearchSpace::build({parameter("x", values)}, {});
}

TEST(Levels, OfTwentyThousandValuesDoNotHoldUpASearch) {
  const SearchSpace space = steps(200);
  for (const char* name : {"auto", "bayesian_pareto"}) {
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
