// What every registered strategy promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "fixtures.hpp"

namespace ergotune {
namespace {

using namespace search_tests;

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& description : strategies()) names.push_back(description.name);
  return names;
}

TEST(Strategies, AreInTheTableOfTheManual) {
  const auto page = read_file(ERGOTUNE_SOURCE_DIR "/docs/strategies.md");
  ASSERT_TRUE(page);
  for (const std::string& name : all_names())
    EXPECT_NE(page->find("`" + name + "`"), std::string::npos) << name << ": add it to the table of docs/strategies.md";
}

class EveryStrategy : public testing::TestWithParam<std::string> {
 protected:
  StrategyContext context(const SearchSpace& space, std::uint64_t seed = 7) const {
    StrategyContext c;
    c.space = &space;
    c.seed = seed;
    return c;
  }

  /// "coordinate" ends where no coordinate gets better; all others go on until the space is used up.
  void expect_all(std::size_t requested, std::size_t all) const {
    if (GetParam() == "coordinate") {
      EXPECT_GE(requested, 1u);
      EXPECT_LE(requested, all);
    } else {
      EXPECT_EQ(requested, all);
    }
  }

  /// Runs to its end; `batch` configurations at a time, told in an order that is not the one they were asked in.
  template <class Value>
  std::vector<ConfigurationIndex> run(Strategy& strategy, const SearchSpace& space, std::size_t batch, Value value,
                                      std::size_t limit = 100000) {
    std::vector<ConfigurationIndex> requested;
    std::set<ConfigurationIndex> seen;
    std::vector<ConfigurationIndex> outstanding;
    while (requested.size() < limit) {
      const auto next = strategy.ask(batch - outstanding.size());
      EXPECT_LE(next.size(), batch - outstanding.size());
      if (next.empty() && outstanding.empty()) break;
      for (const ConfigurationIndex index : next) {
        EXPECT_LT(index, space.size());
        EXPECT_TRUE(seen.insert(index).second) << "asked twice: " << index;
        requested.push_back(index);
        outstanding.push_back(index);
      }
      // the newest result first, so that old ones stay outstanding for a while
      const ConfigurationIndex done = outstanding.back();
      outstanding.pop_back();
      strategy.tell(done, value(done));
    }
    return requested;
  }
};

TEST_P(EveryStrategy, EndsOnTinySpacesHavingTriedAll) {
  for (const int size : {1, 2, 3}) {
    const SearchSpace space = line_space(size);
    const auto strategy = make_strategy(GetParam(), context(space));
    const auto requested =
        run(*strategy, space, 1, [](auto index) { return success(1.0 + static_cast<double>(index)); });
    expect_all(requested.size(), static_cast<std::size_t>(size));
    EXPECT_TRUE(strategy->ask(1).empty());
  }
}

TEST_P(EveryStrategy, VisitsAWholeRestrictedSpaceOnceAndNothingElse) {
  const SearchSpace space = restricted_space();
  for (const std::size_t batch : {std::size_t{1}, std::size_t{5}}) {
    const auto strategy = make_strategy(GetParam(), context(space));
    const auto requested = run(*strategy, space, batch, [&](auto index) { return success(landscape(space, index)); });
    SCOPED_TRACE(batch);
    expect_all(requested.size(), space.size());
  }
}

TEST_P(EveryStrategy, SurvivesASpaceWhereEverythingFails) {
  const SearchSpace space = restricted_space();
  const auto strategy = make_strategy(GetParam(), context(space));
  const auto requested = run(*strategy, space, 1, [](auto) { return Outcome{}; });
  expect_all(requested.size(), space.size());
}

TEST_P(EveryStrategy, SurvivesNegativeEqualAndMixedValues) {
  const SearchSpace space = restricted_space();
  const auto negative = make_strategy(GetParam(), context(space));
  run(
      *negative, space, 1, [&](auto i) { return success(-1 / landscape(space, i)); }, 80);
  const auto equal = make_strategy(GetParam(), context(space));
  run(
      *equal, space, 1, [](auto) { return success(2.5); }, 80);
  const auto mixed = make_strategy(GetParam(), context(space));
  run(
      *mixed, space, 3, [&](auto i) { return i % 3 == 0 ? Outcome{} : success(landscape(space, i)); }, 80);
  const auto nan = make_strategy(GetParam(), context(space));
  run(
      *nan, space, 1, [](auto i) { return success(i % 2 == 0 ? std::nan("") : 1.0 + static_cast<double>(i)); }, 40);
}

TEST_P(EveryStrategy, SameSeedSameSequence) {
  const SearchSpace space = restricted_space();
  const auto value = [&](auto index) { return success(landscape(space, index)); };
  const auto first = make_strategy(GetParam(), context(space, 3));
  const auto second = make_strategy(GetParam(), context(space, 3));
  EXPECT_EQ(run(*first, space, 2, value, 60), run(*second, space, 2, value, 60));
}

TEST_P(EveryStrategy, NeverAsksForWhatIsKnown) {
  const SearchSpace space = restricted_space();
  StrategyContext c = context(space);
  std::set<ConfigurationIndex> known;
  for (ConfigurationIndex i = 0; i < space.size(); i += 3) {
    c.known.emplace_back(i, success(landscape(space, i)));
    known.insert(i);
  }
  const auto strategy = make_strategy(GetParam(), c);
  const auto requested = run(*strategy, space, 1, [&](auto index) { return success(landscape(space, index)); });
  for (const ConfigurationIndex index : requested) EXPECT_EQ(known.count(index), 0u);
  expect_all(requested.size() + known.size(), space.size());
}

TEST_P(EveryStrategy, TakesAPriorAndSeveralObjectives) {
  const SearchSpace space = restricted_space();
  StrategyContext c = context(space);
  c.priors.push_back({"another device", {}});
  for (ConfigurationIndex i = 0; i < space.size(); i += 2)
    c.priors.front().outcomes.emplace_back(i, success(2 * landscape(space, i)));
  const auto strategy = make_strategy(GetParam(), c);
  run(
      *strategy, space, 1, [&](auto index) { return success(landscape(space, index)); }, 50);

  StrategyContext two = context(space);
  two.objectives = 2;
  const auto pareto = make_strategy(GetParam(), two);
  run(
      *pareto, space, 2,
      [&](auto index) {
        Outcome outcome = success(landscape(space, index));
        outcome.values.push_back(1e-3 * static_cast<double>(index % 17 + 1));
        return outcome;
      },
      60);
}

TEST_P(EveryStrategy, TakesRevisedOutcomes) {
  const SearchSpace space = restricted_space();
  const auto strategy = make_strategy(GetParam(), context(space));
  std::set<ConfigurationIndex> seen;
  for (int n = 0; n < 60; ++n) {
    const auto requested = strategy->ask(1);
    if (requested.empty()) break;
    EXPECT_TRUE(seen.insert(requested.front()).second);
    strategy->tell(requested.front(), success(landscape(space, requested.front())));
    if (n % 20 == 19)
      for (const ConfigurationIndex index : seen) strategy->tell(index, success(3 * landscape(space, index)));
  }
  expect_all(seen.size(), 60u);
}

TEST(StrategyBase, ItsBestFollowsRevisedOutcomes) {
  class Told : public search::StrategyBase {
   public:
    explicit Told(const StrategyContext& context) : StrategyBase("told", context) {}
    using StrategyBase::best, StrategyBase::best_value;

   private:
    void advance(std::size_t) override {}
  };
  const SearchSpace space = line_space(3);
  StrategyContext context;
  context.space = &space;
  Told strategy(context);
  strategy.tell(0, success(2));
  strategy.tell(1, success(1));
  EXPECT_EQ(strategy.best(), 1u);
  strategy.tell(1, success(10));
  EXPECT_EQ(strategy.best(), 0u);
  EXPECT_EQ(strategy.best_value(), 2);
  strategy.tell(0, {});
  EXPECT_EQ(strategy.best(), 1u);
  EXPECT_EQ(strategy.best_value(), 10);
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

TEST(Strategies, EveryOptionsCandidatesAreAccepted) {
  const SearchSpace space = line_space(40);
  for (const auto& description : strategies())
    for (const auto& option : description.options)
      for (const Value& candidate : option.candidates) {
        StrategyContext c;
        c.space = &space;
        c.options[option.name] = candidate;
        const auto strategy = make_strategy(description.name, c);
        for (int i = 0; i < 15; ++i)
          for (const auto index : strategy->ask(1))
            strategy->tell(index, success(1.0 + std::abs(20.0 - static_cast<double>(index))));
      }
}

TEST(Strategies, ModelBasedOnesNeedFarFewerEvaluationsThanRandom) {
  const SearchSpace space = restricted_space();
  double optimum = 1e300;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) optimum = std::min(optimum, landscape(space, i));
  const auto evaluations = [&](const std::string& name) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      StrategyContext c;
      c.space = &space;
      c.seed = seed;
      const auto strategy = make_strategy(name, c);
      for (;;) {
        const auto requested = strategy->ask(1);
        if (requested.empty()) break;
        const double value = landscape(space, requested.front());
        strategy->tell(requested.front(), success(value));
        sum += 1;
        if (value <= 1.01 * optimum) break;
      }
    }
    return sum / 8;
  };
  const double random = evaluations("random");
  EXPECT_LT(evaluations("auto"), random / 3);
  EXPECT_LT(evaluations("genetic"), random);
}

TEST(Strategies, AutoFailsMoreSeldomThanRandomWhereAValueAlwaysFails) {
  std::vector<Value> rows;
  for (int i = 3; i <= 10; ++i) rows.push_back(1 << i);
  const SearchSpace space = SearchSpace::build({parameter("rows", rows), parameter("type", {"half", "float", "double"}),
                                                parameter("method", {"a", "b", "c", "d", "e", "f", "g", "h"})},
                                               {});
  const auto failures = [&](const std::string& name) {
    int failed = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      StrategyContext c;
      c.space = &space;
      c.seed = seed;
      const auto strategy = make_strategy(name, c);
      for (int n = 0; n < 60; ++n)
        for (const ConfigurationIndex index : strategy->ask(1)) {
          const Configuration at = space.configuration(index);
          const bool fails = at[1].as_string() == "half";
          failed += fails;
          const double method = at[2].as_string().front() - 'a';
          const double value = (1 + 4 / at[0].as_real()) * (1 + 0.3 * std::fmod(7 * method, 8)) *
                               (at[1].as_string() == "float" ? 1 : 2.2);
          strategy->tell(index, fails ? Outcome{} : success(value));
        }
    }
    return failed;
  };
  EXPECT_LT(failures("auto"), failures("random"));
}

TEST(Strategies, APriorFromElsewhereShortensTheSearch) {
  const SearchSpace space = restricted_space();
  const auto best_after = [&](bool with_prior) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      StrategyContext c;
      c.space = &space;
      c.seed = seed;
      // the other device is twice as slow, and prefers smaller unrolling a little
      if (with_prior) c.priors.push_back({"another device", {}});
      for (ConfigurationIndex i = 0; with_prior && i < space.size(); i += 2)
        c.priors.front().outcomes.emplace_back(
            i, success(2 * landscape(space, i) * (1 + 0.02 * space.configuration(i)[1].as_real())));
      const auto strategy = make_strategy("auto", c);
      double best = 1e300;
      for (int n = 0; n < 6; ++n)
        for (const auto index : strategy->ask(1)) {
          const double value = landscape(space, index);
          best = std::min(best, value);
          strategy->tell(index, success(value));
        }
      sum += best;
    }
    return sum;
  };
  EXPECT_LT(best_after(true), best_after(false));
}

class Reverse : public Strategy {
 public:
  explicit Reverse(const StrategyContext& c) : next_(c.space->size()) {}
  std::string name() const override { return "reverse"; }
  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    std::vector<ConfigurationIndex> requested;
    while (requested.size() < count && next_ > 0) requested.push_back(--next_);
    return requested;
  }
  void tell(ConfigurationIndex index, const Outcome&) override { told.push_back(index); }

  static inline std::vector<ConfigurationIndex> told;

 private:
  ConfigurationIndex next_;
};

TEST(Strategies, AUsersOwnIsASmallClass) {
  StrategyDescription description;
  description.name = "reverse";
  description.make = [](const StrategyContext& c) { return std::make_unique<Reverse>(c); };
  register_strategy(description);
  const SearchSpace space = line_space(5);
  StrategyContext c;
  c.space = &space;
  EXPECT_EQ(make_strategy("reverse", c)->ask(2), (std::vector<ConfigurationIndex>{4, 3}));
  c.known = {{4, success(1)}, {5, success(1)}, {0, success(1)}, {99, success(1)}};
  make_strategy("reverse", c);
  EXPECT_EQ(Reverse::told, (std::vector<ConfigurationIndex>{4, 0})) << "what is not in the space is not told";
}

TEST(Strategies, WrongNamesAndOptionsAreSaidClearly) {
  const SearchSpace space = line_space(5);
  StrategyContext c;
  c.space = &space;
  try {
    make_strategy("simulated_anealing", c);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("simulated_annealing"), std::string::npos);
  }
  c.options["populatoin"] = 10;
  EXPECT_THROW(make_strategy("genetic", c), UserError);
  c.options = {{"population", "many"}};
  EXPECT_THROW(make_strategy("genetic", c), UserError);
}

TEST(Strategies, AutoSaysWhatItChoseAndWhy) {
  const SearchSpace space = restricted_space();
  StrategyContext c;
  c.space = &space;
  c.budget = 50;
  EXPECT_NE(make_strategy("auto", c)->explanation().find("Gaussian process"), std::string::npos);
  c.objectives = 2;
  EXPECT_NE(make_strategy("auto", c)->explanation().find("2 objectives"), std::string::npos);
}

}  // namespace
}  // namespace ergotune
