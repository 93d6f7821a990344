// What a strategy sees while it is scored, and strategies tuned by their scores. Strategies that are
// registered here stay: the tests of all strategies stand in files before this one.
#include "ergotune/search/tune_strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "ergotune/base/error.hpp"
#include "fixtures.hpp"

namespace ergotune {
namespace {

using search_tests::line_recording;
using ::testing::ElementsAre;

/// What the strategies of these tests were given.
struct Seen {
  std::vector<std::uint64_t> seeds, sizes, budgets, told;
  std::vector<double> seconds;
  std::map<std::string, Value> options;
};
Seen seen;
std::mutex seeing;

/// Asks in the order of the values where its option "rank" is 2, else in the opposite one; ends after eight, and does not do for five.
class Ordered : public Strategy {
 public:
  explicit Ordered(const StrategyContext& c)
      : size_(c.space->size()), forward_(c.options.at("rank") == Value(2)) {
    const std::lock_guard lock(seeing);
    seen.seeds.push_back(c.seed);
    seen.sizes.push_back(c.space->size());
    seen.budgets.push_back(c.budget);
    seen.options = c.options;
  }
  std::string name() const override { return "ordered"; }
  std::vector<ConfigurationIndex> ask(std::size_t) override {
    if (size_ == 5) throw UserError("five are too few");
    if (next_ == size_ || next_ == 8) return {};
    const ConfigurationIndex index = forward_ ? next_ : size_ - 1 - next_;
    ++next_;
    return {index};
  }
  void tell(ConfigurationIndex index, const Outcome& outcome) override {
    const std::lock_guard lock(seeing);
    seen.told.push_back(index);
    seen.seconds.push_back(outcome.seconds);
  }

 private:
  ConfigurationIndex size_, next_ = 0;
  bool forward_;
};

class Tuning : public testing::Test {
 protected:
  Tuning() {
    seen = {};
    StrategyDescription description;
    description.name = "ordered";
    description.options = {{"rank", "which way", 1, {0, 2}},
                           {"idle", "nothing", "a", {"a", "b"}},
                           {"fixed", "as it is", 3, {3}}};
    description.make = [](const StrategyContext& c) { return std::make_unique<Ordered>(c); };
    register_strategy(description);
    options_.repeats = 2;
    options_.threads = 1;
  }
  static std::vector<ScoredSpace> spaces(double seconds = 2, int size = 12) {
    std::vector<double> values, costs;
    for (int i = 0; i < size; ++i) values.push_back(1 + 0.5 * i), costs.push_back(seconds * (1 + 0.1 * i));
    std::vector<ScoredSpace> list;
    list.emplace_back(line_recording(values, costs));
    return list;
  }
  ScoreOptions options_;
};

TEST_F(Tuning, AStrategyIsToldWhatAnEvaluationCostsAndHowManyThereWillBe) {
  const auto list = spaces();
  options_.seed = 40;
  const auto score = score_strategies({"ordered"}, list, options_).front().spaces.front();
  ASSERT_EQ(seen.seeds.size(), 3u) << "one to see that it can be made";
  EXPECT_THAT(std::vector(seen.seeds.begin() + 1, seen.seeds.end()), ElementsAre(40, 41));
  // the median of the costs is 2 * 1.55 s
  EXPECT_EQ(seen.budgets.back(), static_cast<std::uint64_t>(std::ceil(list[0].budget_seconds() / 3.1)));
  // it goes on until the budget is spent: 4.2, 8.2 ... s of the costs from the last on
  std::vector<double> costs;
  for (double clock = 0; clock < list[0].budget_seconds(); clock += costs.back())
    costs.push_back(2 * (1 + 0.1 * static_cast<double>(11 - costs.size())));
  ASSERT_EQ(seen.seconds.size(), 2 * costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) EXPECT_NEAR(seen.seconds[i], costs[i], 1e-6);
  EXPECT_EQ(score.evaluations, static_cast<double>(costs.size()));
  EXPECT_GE(score.own_seconds, 0);
  EXPECT_LT(score.own_seconds, 1);
}

// Whoever thinks for longer than the configurations take has spent the budget on that.
TEST_F(Tuning, AStrategysOwnTimeIsSpentToo) {
  const auto list = spaces(1e-10);
  EXPECT_EQ(score_strategies({"ordered"}, list, options_).front().spaces.front().evaluations, 1);
}

TEST_F(Tuning, AStrategyIsToldNoCostsThatNobodyKnows) {
  const auto list = spaces(0);
  score_strategies({"ordered"}, list, options_);
  ASSERT_FALSE(seen.seconds.empty());
  for (const double seconds : seen.seconds) EXPECT_EQ(seconds, 0);
  EXPECT_EQ(seen.seconds.size(),
            2 * std::min<std::size_t>(8, static_cast<std::size_t>(std::ceil(list[0].budget_seconds()))));
}

TEST_F(Tuning, EveryRunIsReported) {
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  options_.progress = [&](std::size_t done, std::size_t total) { progress.emplace_back(done, total); };
  auto list = spaces();
  list.push_back(std::move(spaces()[0]));
  const auto scores = score_strategies({"ordered", "brute_force"}, list, options_);
  ASSERT_EQ(progress.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(progress[i], (std::pair<std::size_t, std::size_t>{i + 1, 8}));
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[1].strategy, "brute_force");
  EXPECT_EQ(scores[1].spaces.size(), 2u);
  EXPECT_EQ(scores[1].spaces[1].evaluations_to_1_percent, 1) << "the best stands first";
  EXPECT_GT(scores[0].spaces[1].evaluations_to_1_percent, 1);
  EXPECT_TRUE(score_strategies({"ordered"}, {}, options_).front().spaces.empty());
}

TEST_F(Tuning, EachSpaceIsSearchedWithEachSeed) {
  auto list = spaces();
  list.push_back(std::move(spaces(2, 9)[0]));
  list.push_back(std::move(spaces(2, 7)[0]));
  options_.seed = 40;
  const auto scores = score_strategies({"brute_force", "ordered"}, list, options_);
  EXPECT_THAT(seen.sizes, ElementsAre(12, 12, 12, 9, 9, 7, 7)) << "one to see that it can be made";
  EXPECT_THAT(std::vector(seen.seeds.begin() + 1, seen.seeds.end()), ElementsAre(40, 41, 40, 41, 40, 41));
  ASSERT_EQ(scores[1].spaces.size(), 3u);
  for (std::size_t p = 0; p < list.size(); ++p) {
    EXPECT_EQ(scores[0].spaces[p].evaluations_to_1_percent, 1) << "the best stands first";
    EXPECT_EQ(scores[1].spaces[p].successes_1_percent, 0u) << "the worst comes first";
  }
}

TEST_F(Tuning, AtLeastOneRunIsMade) {
  const auto list = spaces();
  for (const int repeats : {-1, 0, 1}) {
    seen = {};
    options_.repeats = repeats;
    score_strategies({"ordered"}, list, options_);
    EXPECT_EQ(seen.seeds.size(), 2u) << repeats << ", and one to see that it can be made";
  }
}

TEST_F(Tuning, WhatAStrategyThrowsReachesWhoScoresIt) {
  auto list = spaces();
  list.push_back(std::move(spaces(2, 5)[0]));
  for (const int threads : {1, 3}) {
    options_.threads = threads;
    EXPECT_THROW(score_strategies({"brute_force", "ordered"}, list, options_), UserError);
  }
}

TEST_F(Tuning, FindsTheBestOfTheCandidatesAndSaysWhatTheDefaultsWereWorth) {
  const auto list = spaces();
  const StrategyTuning tuning = tune_strategy("ordered", list, options_, 100);
  EXPECT_EQ(tuning.strategy, "ordered");
  ASSERT_EQ(tuning.trials.size(), 6u)
      << "a default of 1 beside 0 and 2, and two texts; what has one value is not tuned";
  EXPECT_EQ(tuning.trials[0].options, (std::map<std::string, Value>{{"idle", "a"}, {"rank", 1}}))
      << "the defaults come first";
  EXPECT_EQ(tuning.best.at("rank"), Value(2));
  EXPECT_EQ(tuning.default_score, tuning.trials[0].score);
  EXPECT_NEAR(tuning.best_score, 1, 1e-9) << "the optimum at once";
  EXPECT_LT(tuning.default_score, tuning.best_score);
  for (const StrategyTrial& trial : tuning.trials)
    EXPECT_NEAR(trial.score, trial.options.at("rank") == Value(2) ? 1 : tuning.default_score, 1e-9);
}

TEST_F(Tuning, KeepsToTheTrialsAndToWhatIsGiven) {
  const auto list = spaces();
  EXPECT_EQ(tune_strategy("ordered", list, options_, 3).trials.size(), 3u);
  EXPECT_EQ(tune_strategy("ordered", list, options_, 1).trials.size(), 1u);
  options_.strategy_options = {{"rank", 2}};
  const StrategyTuning tuning = tune_strategy("ordered", list, options_, 9);
  ASSERT_EQ(tuning.trials.size(), 2u);
  EXPECT_EQ(tuning.trials[1].options, (std::map<std::string, Value>{{"idle", "b"}}));
  EXPECT_EQ(seen.options.at("rank"), Value(2));
  EXPECT_EQ(tuning.best, tuning.trials[0].options) << "of equals the first";
}

TEST_F(Tuning, SaysWhatCannotBeTuned) {
  const auto list = spaces();
  EXPECT_THROW(tune_strategy("ordered", {}, options_, 3), UserError);
  EXPECT_THROW(tune_strategy("brute_force", list, options_, 3), UserError);
  EXPECT_THROW(tune_strategy("no_such_strategy", list, options_, 3), UserError);
  options_.strategy_options = {{"rang", 2}};
  EXPECT_THROW(tune_strategy("ordered", list, options_, 3), UserError);
  options_.strategy_options = {{"rank", 2}, {"idle", "a"}};
  EXPECT_THROW(tune_strategy("ordered", list, options_, 3), UserError) << "nothing is left";
}

TEST(StrategyOptions, AreWholeNumbersRealOnesOrTexts) {
  EXPECT_TRUE(strategy_option_value("7").is_integer());
  EXPECT_EQ(strategy_option_value("-7"), Value(-7));
  EXPECT_TRUE(strategy_option_value("7.0").is_real());
  EXPECT_EQ(strategy_option_value("1e3"), Value(1000.0));
  for (const char* text : {"best", "7x", "0.5x", "", "+7", "7 "})
    EXPECT_EQ(strategy_option_value(text), Value(text)) << text;
}

}  // namespace
}  // namespace ergotune
