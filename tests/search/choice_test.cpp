// What strategies say and refuse: the default's choice, members of the bandit, options, and what all of them
// share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ergotune/base/error.hpp"
#include "fixtures.hpp"
#include "search/memory.hpp"
#include "search/strategy_base.hpp"

namespace ergotune {
namespace {

using namespace search_tests;
using ::testing::HasSubstr;

SearchSpace grid_space(int width, int height) {
  std::vector<Value> columns, rows;
  for (int i = 0; i < width; ++i) columns.push_back(i);
  for (int i = 0; i < height; ++i) rows.push_back(i);
  return SearchSpace::build({parameter("x", columns), parameter("y", rows)}, {});
}

class Choice : public testing::Test {
 protected:
  StrategyContext context(const SearchSpace& space) const {
    StrategyContext c;
    c.space = &space;
    return c;
  }
  std::string said(
      const SearchSpace& space, const std::function<void(StrategyContext&)>& change = [](auto&) {}) const {
    StrategyContext c = context(space);
    change(c);
    return make_strategy("auto", c)->explanation();
  }
  static std::string refusal(const std::string& name, const StrategyContext& c) {
    try {
      make_strategy(name, c);
    } catch (const UserError& error) {
      return error.what();
    }
    return {};
  }
  static Outcome failed() { return {}; }
};

TEST_F(Choice, OfAutoFollowsTheSpaceAndTheObjectives) {
  EXPECT_EQ(said(line_space(4)), "brute_force: 4 configurations need no search");
  EXPECT_EQ(said(line_space(5)), "bayesian: a Gaussian process over all of 5 configurations");
  EXPECT_EQ(said(grid_space(200, 100)), "bayesian: a Gaussian process over all of 20000 configurations");
  EXPECT_EQ(said(grid_space(177, 113)), "bayesian: a Gaussian process over a sample of 20001 configurations");
  EXPECT_EQ(said(line_space(9), [](auto& c) { c.budget = 1; }),
            "bayesian: a Gaussian process over all of 9 configurations, for about 1 evaluations");
  EXPECT_EQ(said(line_space(9), [](auto& c) { c.objectives = 2; }), "bayesian_pareto: 2 objectives");
  EXPECT_EQ(said(line_space(9),
                 [](auto& c) {
                   c.priors = {{"first", {{1, success(1)}, {2, success(2)}}}, {"second", {}}};
                 }),
            "bayesian: a Gaussian process over all of 9 configurations, starting from first (2 outcomes), "
            "second (0 outcomes)");
}

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
  EXPECT_THAT(strategy->explanation(),
              HasSubstr("; genetic since evaluation 1200, a model of more would cost too much"));
}

TEST_F(Choice, OfTheModelSaysWhenEvaluationsAreTooShortForIt) {
  const SearchSpace space = grid_space(60, 50);
  for (const double seconds : {0.0, 1e-6}) {
    const auto strategy = make_strategy("bayesian", context(space));
    for (int i = 0; i < (seconds > 0 ? 600 : 40); ++i)
      for (const auto index : strategy->ask(1)) {
        Outcome outcome = success(1 + std::abs(std::sin(0.01 * static_cast<double>(index))));
        outcome.seconds = seconds;
        strategy->tell(index, outcome);
      }
    EXPECT_EQ(strategy->explanation().empty(), seconds == 0);
    if (seconds > 0) {
      EXPECT_THAT(strategy->explanation(), HasSubstr(" of 597 configurations are the model's choice"))
          << "all but the design";
    }
  }
}

TEST_F(Choice, OfTheBanditIsAmongItsMembers) {
  const SearchSpace space = line_space(30);
  StrategyContext c = context(space);
  c.options["members"] = "random+genetic";
  const auto bandit = make_strategy("bandit", c);
  EXPECT_EQ(bandit->explanation(), "asked so far: random 0 genetic 0");
  for (int i = 0; i < 10; ++i)
    for (const auto index : bandit->ask(1)) bandit->tell(index, success(1));
  EXPECT_THAT(bandit->explanation(), ::testing::MatchesRegex("asked so far: random [1-9] genetic [1-9]"))
      << "each of them first";
  for (const auto& [members, words] : {std::pair{"random+bandit", "own member"},
                                       {"auto", "own member"},
                                       {"", "names no strategy"},
                                       {"random+genetik", "genetic"}}) {
    c.options["members"] = members;
    EXPECT_THAT(refusal("bandit", c), HasSubstr(words)) << members;
  }
}

// Who was not asked within the window comes first.
TEST_F(Choice, OfTheBanditForgetsWhatLeftTheWindow) {
  const SearchSpace space = line_space(60);
  StrategyContext c = context(space);
  c.options = {{"members", "random+genetic+hill_climbing"}, {"window", 2}};
  const auto bandit = make_strategy("bandit", c);
  std::vector<std::string> said;
  for (int i = 0; i < 24; ++i)
    for (const auto index : bandit->ask(1)) {
      bandit->tell(index, success(1));
      said.push_back(bandit->explanation());
    }
  EXPECT_EQ(said.at(2), "asked so far: random 1 genetic 1 hill_climbing 1");
  EXPECT_EQ(said.at(23), "asked so far: random 8 genetic 8 hill_climbing 8");
  for (std::size_t i = 5; i < said.size(); i += 3) {
    const auto each = std::to_string(i / 3 + 1);
    EXPECT_EQ(said[i], "asked so far: random " + each + " genetic " + each + " hill_climbing " + each);
  }
}

TEST_F(Choice, OfOptionsIsByTheirKind) {
  const SearchSpace space = line_space(30);
  const auto with = [&](const std::string& name, const std::string& option, const Value& value) {
    StrategyContext c = context(space);
    c.options[option] = value;
    return refusal(name, c);
  };
  EXPECT_EQ(with("genetic", "mutation", 1), "") << "a whole number will do for a real one";
  EXPECT_EQ(with("genetic", "population", true), "");
  EXPECT_THAT(with("genetic", "mutation", "much"), HasSubstr("option mutation takes a number, not 'much'"));
  EXPECT_THAT(with("genetic", "population", 2.5),
              HasSubstr("option population takes a whole number, not 2.5"));
  EXPECT_THAT(with("hill_climbing", "improvement", 1), HasSubstr("option improvement takes a text, not 1"));
  EXPECT_THAT(with("hill_climbing", "improvement", "second"),
              HasSubstr("\"first\" or \"best\", not \"second\""));
  EXPECT_THAT(with("tabu", "neighbourhood", "near"), HasSubstr("\"hamming\" or \"adjacent\", not \"near\""));
  EXPECT_THAT(with("brute_force", "population", 3), HasSubstr("it has none"));
  EXPECT_THAT(with("genetic", "mutatoin", 3), HasSubstr("mutation"));
  EXPECT_THROW(make_strategy("random", StrategyContext{}), Error);
}

// Several objectives told to a strategy that knows one: their product, which no unit changes the order of;
// their sum where one is not positive.
TEST_F(Choice, OfOneNumberForSeveralObjectives) {
  const auto scalar = [](std::vector<double> values) {
    Outcome outcome = success(0);
    outcome.values = std::move(values);
    return search::scalar_value(outcome);
  };
  EXPECT_EQ(scalar({-3}), -3);
  EXPECT_EQ(scalar({2, 3, 4}), 24);
  EXPECT_EQ(scalar({2, -3, 4}), 3);
  EXPECT_EQ(scalar({0, 3}), 3);
  EXPECT_EQ(scalar({}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(search::scalar_value(failed()), std::numeric_limits<double>::infinity());
}

TEST_F(Choice, OfTheFirstIsAnEarlierSearchsBest) {
  const SearchSpace space = line_space(30);
  StrategyContext c = context(space);
  c.priors = {
      {"first", {{40, success(0)}, {3, failed()}, {7, success(2)}, {9, success(1)}, {11, success(3)}}},
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

// A space of any size: few are remembered by a table, many by what is known of them.
TEST(Memory, CountsWhatIsFreshAndFindsTheLast) {
  for (const std::uint64_t size : {std::uint64_t{70}, std::uint64_t{9'000'000'000}}) {
    search::Memory memory(size);
    Random random(2);
    EXPECT_EQ(memory.fresh_count(), size);
    memory.record(5, true, 2.5);
    memory.record(6, false, 2.5);
    memory.set_state(7, search::Memory::State::queued);
    EXPECT_EQ(memory.fresh_count(), size - 3);
    EXPECT_EQ(memory.value(5), 2.5);
    EXPECT_EQ(memory.value(6), std::numeric_limits<double>::infinity());
    EXPECT_EQ(memory.value(8), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(memory.known(5) && memory.known(6) && !memory.known(7) && !memory.fresh(7));
    memory.set_state(7, search::Memory::State::fresh);
    memory.set_state(7, search::Memory::State::fresh);
    EXPECT_EQ(memory.fresh_count(), size - 2);
    const auto any = memory.random_fresh(random);
    ASSERT_TRUE(any);
    EXPECT_TRUE(*any < size && memory.fresh(*any));
  }
  for (ConfigurationIndex left = 0; left < 70; ++left) {
    search::Memory memory(70);
    Random random(left);
    for (ConfigurationIndex i = 0; i < 70; ++i)
      if (i != left) memory.record(i, true, 1);
    EXPECT_EQ(memory.random_fresh(random), left);
    memory.record(left, true, 1);
    EXPECT_FALSE(memory.random_fresh(random));
  }
}

}  // namespace
}  // namespace ergotune
