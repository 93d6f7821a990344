// What a strategy sees while it is scored, and strategies tuned by their scores. Strategies that are
// registered here stay: the tests of all strategies stand in files before this one.
#include "scoring/tune_strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "ergotune/error.hpp"
#include "search/fixtures.hpp"

namespace ergotune {
namespace {

using search_tests::line_recording;

/// What the strategies of these tests were given.
struct Seen {
  std::vector<std::uint64_t> seeds, sizes, budgets, reported;
  std::vector<double> seconds;
  std::map<std::string, Value> options;
};
Seen seen;
std::mutex seeing;

/// Asks in the order of the values where its option "rank" is 2, else in the opposite one; ends after eight, and does
/// not do for five.
class Ordered : public Strategy {
 public:
  explicit Ordered(const StrategyContext& c) : size_(c.space->size()), forward_(c.options.at("rank") == Value(2)) {
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
    seen.reported.push_back(index);
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
    description.options = {
        {"rank", "which way", 1, {0, 2}}, {"idle", "nothing", "a", {"a", "b"}}, {"fixed", "as it is", 3, {3}}};
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
