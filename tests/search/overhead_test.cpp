// What a search computes within its overhead budget, and what it makes of earlier results.
#include "search/models/overhead_budget.hpp"

#include <gtest/gtest.h>

#include "../../bench/search/cliffs.hpp"
#include "fixtures.hpp"
#include "search/models/prior.hpp"
#include "search/models/prior_features.hpp"

namespace ergotune {
namespace {

using namespace search_tests;
using search::OverheadBudget;

struct Searched {
  std::vector<ConfigurationIndex> order;
  double best = 1e300;
};

Searched search(const cliffs::Space& cliffs, double seconds, std::size_t evaluations) {
  StrategyContext context;
  context.space = &cliffs.space();
  const auto strategy = make_strategy("auto", context);
  Searched searched;
  while (searched.order.size() < evaluations) {
    const ConfigurationIndex index = strategy->ask(1).at(0);
    Outcome outcome;
    outcome.ok = std::isfinite(cliffs.value(index));
    if (outcome.ok) outcome.values = {cliffs.value(index)};
    outcome.seconds = seconds;
    searched.best = std::min(searched.best, cliffs.value(index));
    strategy->tell(index, outcome);
    searched.order.push_back(index);
  }
  return searched;
}

TEST(OverheadBudget, PaysForComputationWithAShareOfTheEvaluationsTime) {
  // operations that an evaluation of `seconds` pays for once what was saved up is spent
  const auto paid = [](double seconds) {
    OverheadBudget budget;
    double operations = 0;
    for (int n = 0; n < 1000; ++n) {
      budget.evaluated(seconds, false);
      while (budget.affordable(OverheadBudget::Account::steps)) {
        budget.charge(OverheadBudget::Account::steps, 1e6, [] {});
        operations += 1e6;
      }
    }
    return operations / 1000;
  };
  EXPECT_NEAR(paid(1) / paid(0.1), 10, 1);
  OverheadBudget unknown;
  unknown.evaluated(0, false);
  unknown.charge(OverheadBudget::Account::steps, 1e18, [] {});
  EXPECT_TRUE(unknown.affordable(OverheadBudget::Account::steps)) << "no duration is known";
}

TEST(OverheadBudget, OfAutoIsCountedAndNotTimed) {
  cliffs::Options options = cliffs::draw_options(8);
  options.largest = 2e4;
  const cliffs::Space space(options);
  const Searched quick = search(space, 1e-3, 200);
  EXPECT_EQ(quick.order, search(space, 1e-3, 200).order);
  EXPECT_NE(quick.order, search(space, 10, 200).order) << "short evaluations pay for fewer computations";
  EXPECT_EQ(search(space, 10, 40).order, search(space, 0, 40).order);
  EXPECT_LT(quick.best, 1.2 * space.optimum());
}

TEST(Prior, OfARecordingMeetsTheSpaceByNamesAndValues) {
  Recording recording = line_recording({4, 3, std::numeric_limits<double>::infinity(), 2, 1}, {1, 1, 1, 1, 1});
  recording.device = "another card";
  // here x has other values in another order, and there is a parameter that the recording did not know
  Parameter y = parameter("y", {1, 2});
  y.default_value.emplace(2);
  const SearchSpace space = SearchSpace::build({y, parameter("x", {3, 2, 0, 9})}, {});
  const PriorResults prior = prior_results(recording, space, Objective::parse({}, {}));
  EXPECT_EQ(prior.name, "line on another card");
  ASSERT_EQ(prior.outcomes.size(), 3u);
  EXPECT_EQ(usable_outcomes(prior), 2u);
  for (const auto& [index, outcome] : prior.outcomes) {
    const Configuration configuration = space.configuration(index);
    EXPECT_EQ(configuration[0], Value(2));
    EXPECT_EQ(outcome.ok, configuration[1] != Value(2));
    if (outcome.ok) {
      EXPECT_EQ(outcome.values.at(0), configuration[1] == Value(3) ? 2 : 4);
    }
  }
  for (const bool with : {false, true}) {
    // where it has no default, or one that is none of its values, the first stands for what the recording did not know
    y.default_value.reset();
    if (with) y.default_value.emplace(7);
    const SearchSpace first = SearchSpace::build({y, parameter("x", {3, 2, 0, 9})}, {});
    const auto outcomes = prior_results(recording, first, Objective::parse({}, {})).outcomes;
    ASSERT_EQ(outcomes.size(), 3u);
    for (const auto& [index, outcome] : outcomes) EXPECT_EQ(first.configuration(index)[0], Value(1));
  }
  const SearchSpace strange = SearchSpace::build({parameter("z", {1, 2, 3})}, {});
  EXPECT_TRUE(prior_results(recording, strange, Objective::parse({}, {})).outcomes.empty());
}

/// Mean evaluations to 1 % of the optimum.
double evaluations(const SearchSpace& space, const std::vector<PriorResults>& priors) {
  double optimum = 1e300, sum = 0;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) optimum = std::min(optimum, landscape(space, i));
  constexpr int kSeeds = 8;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    StrategyContext context;
    context.space = &space;
    context.seed = static_cast<std::uint64_t>(seed);
    context.priors = priors;
    const auto strategy = make_strategy("auto", context);
    for (double best = 1e300; best > 1.01 * optimum; ++sum) {
      const ConfigurationIndex index = strategy->ask(1).at(0);
      best = std::min(best, landscape(space, index));
      strategy->tell(index, success(landscape(space, index)));
    }
  }
  return sum / kSeeds;
}

TEST(Prior, ThatMisleadsCostsLittleAndOneThatKnowsSavesMuch) {
  const SearchSpace space = restricted_space();
  PriorResults similar{"similar", {}}, inverted{"inverted", {}};
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    const double bent = landscape(space, i) * (1 + 0.05 * space.configuration(i)[1].as_real());
    similar.outcomes.emplace_back(i, success(3 * bent));
    inverted.outcomes.emplace_back(i, success(1 / bent));
  }
  const double alone = evaluations(space, {});
  EXPECT_LT(evaluations(space, {similar}), 0.7 * alone);
  EXPECT_LT(evaluations(space, {inverted}), 1.3 * alone + 1);
  EXPECT_LT(evaluations(space, {inverted, similar}), alone);
}

// Values that do not even foretell each other are worth nothing, and nothing is what they change.
TEST(Prior, OfShuffledValuesIsPassedOver) {
  const SearchSpace space = restricted_space();
  PriorResults prior{"noise", {}};
  std::vector<double> values;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) values.push_back(landscape(space, i));
  const auto with = [&](const std::vector<double>& list) {
    prior.outcomes.clear();
    for (ConfigurationIndex i = 0; i < space.size(); ++i) prior.outcomes.emplace_back(i, success(list[i]));
    return search::PriorFeatures(space, {prior});
  };
  EXPECT_FALSE(with(values).empty());
  Random random(9);
  random.shuffle(std::span<double>(values));
  EXPECT_TRUE(with(values).empty());
}

// The first of many asked at once are not all in the same place: pending ones are not believed to be improvements.
TEST(Strategies, ABatchOfTheModelIsSpread) {
  const SearchSpace space = line_space(400);
  StrategyContext context;
  context.space = &space;
  const auto strategy = make_strategy("auto", context);
  const auto value = [](ConfigurationIndex i) { return 1 + std::abs(static_cast<double>(i) / 400 - 0.6); };
  for (int n = 0; n < 8; ++n)
    for (const ConfigurationIndex index : strategy->ask(1)) strategy->tell(index, success(value(index)));
  const std::vector<ConfigurationIndex> batch = strategy->ask(8);
  ASSERT_EQ(batch.size(), 8u);
  const auto [low, high] = std::minmax_element(batch.begin(), batch.end());
  EXPECT_GT(*high - *low, 20u);
}

}  // namespace
}  // namespace ergotune
