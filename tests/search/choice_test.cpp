// What strategies say and refuse: the default's choice, members of the bandit, options, and what all of them share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ergotune/error.hpp"
#include "fixtures.hpp"
#include "search/strategy_base.hpp"

namespace ergotune {
namespace {

using namespace search_tests;
using ::testing::HasSubstr;

class Choice : public testing::Test {
 protected:
  StrategyContext context(const SearchSpace& space) const {
    StrategyContext c;
    c.space = &space;
    return c;
  }
  static Outcome failed() { return {}; }
};

TEST_F(Choice, OfAutoEndsEarlyWhereThereIsAModel) {
  const SearchSpace tiny = line_space(4), line = line_space(30);
  EXPECT_FALSE(make_strategy("auto", context(tiny))->ends_early());
  StrategyContext c = context(line);
  const auto strategy = make_strategy("auto", c);
  EXPECT_TRUE(strategy->ends_early());
  EXPECT_FALSE(strategy->prospect()) << "no model yet";
  for (int i = 0; i < 12; ++i)
    for (const auto index : strategy->ask(1))
      strategy->tell(index, success(1 + std::abs(static_cast<double>(index) - 11)));
  ASSERT_TRUE(strategy->prospect());
  EXPECT_GE(*strategy->prospect(), 0);
  EXPECT_LT(*strategy->prospect(), 0.5) << "the optimum is known by now";
  c.objectives = 2;
  EXPECT_FALSE(make_strategy("auto", c)->ends_early());
  EXPECT_FALSE(make_strategy("random", c)->ends_early());
}

// A model of more than 1200 would cost too much: a genetic algorithm goes on, which knows all that was told.
TEST_F(Choice, OfAutoIsHandedOverWhenTheModelHasGrownTooLarge) {
  const SearchSpace space = line_space(2000);
  const auto strategy = make_strategy("auto", context(space));
  const auto value = [](ConfigurationIndex i) { return success(1 + static_cast<double>(i)); };
  const auto first = strategy->ask(2);
  ASSERT_EQ(first.size(), 2u);
  strategy->tell(first[0], value(first[0]));
  std::set<ConfigurationIndex> told{first[0]};
  for (ConfigurationIndex i = 0; told.size() < 1199; ++i)
    if (i != first[1] && told.insert(i).second) strategy->tell(i, value(i));
  EXPECT_THAT(strategy->explanation(), ::testing::Not(HasSubstr("genetic")));
  ConfigurationIndex another = space.size() - 1;
  while (another == first[1] || told.count(another) != 0) --another;
  strategy->tell(another, value(another));
  told.insert(another);
  EXPECT_TRUE(strategy->ask(3).empty()) << "one that was asked for is not told yet";
  strategy->tell(first[1], value(first[1]));
  told.insert(first[1]);
  const auto next = strategy->ask(3);
  EXPECT_FALSE(next.empty());
  for (const ConfigurationIndex index : next) EXPECT_EQ(told.count(index), 0u);
  EXPECT_THAT(strategy->explanation(), HasSubstr("genetic"));
}

TEST_F(Choice, OfTheFirstIsAnEarlierSearchsBest) {
  const SearchSpace space = line_space(30);
  StrategyContext c = context(space);
  c.priors = {{"first", {{40, success(0)}, {3, failed()}, {7, success(2)}, {9, success(1)}, {11, success(3)}}},
              {"second", {{30, success(0)}}},
              {"third", {{29, success(5)}, {28, success(5)}}}};
  EXPECT_EQ(make_strategy("random", c)->ask(2), (std::vector<ConfigurationIndex>{9, 29}))
      << "30 and 40 are not in the space";
}

TEST_F(Choice, OfWhatIsToldUnaskedIsNotAskedAgain) {
  const SearchSpace space = line_space(6);
  StrategyContext c = context(space);
  c.known = {{99, success(1)}, {2, success(1)}};
  const auto strategy = make_strategy("brute_force", c);
  strategy->tell(6, success(1));
  strategy->tell(1, failed());
  EXPECT_EQ(strategy->ask(9), (std::vector<ConfigurationIndex>{0, 3, 4, 5}));
  EXPECT_TRUE(strategy->ask(1).empty());
}

}  // namespace
}  // namespace ergotune
