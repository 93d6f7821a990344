#include "scoring/score.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "scoring/score_baseline.hpp"
#include "search/fixtures.hpp"

namespace ergotune {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

// The worked example of score_reference.py, which calculates the same numbers by itself.
ScoredSpace worked_example() {
  const std::vector<double> values = {1.0, 1.04, 1.3, 1.8, 2.0, 2.1, 2.4, 2.6, 3.0, 3.2,  3.3,  3.7,     4.0,
                                      4.4, 4.5,  5.0, 5.5, 6.0, 6.5, 7.0, 8.0, 9.0, 11.0, 15.0, kFailed, kFailed};
  const std::vector<double> seconds = {5.0, 6.0, 5.5, 6.5, 7.0, 5.0, 6.0, 6.0,  8.0,  7.0,  6.5,  7.0, 7.5,
                                       8.0, 8.0, 8.5, 9.0, 9.0, 9.5, 9.5, 10.0, 10.0, 11.0, 12.0, 3.0, 4.0};
  return ScoredSpace(search_tests::line_recording(values, seconds));
}

std::vector<std::vector<ForeignEvaluation>> worked_runs() {
  return {{{3.0, kFailed},
           {10.0, 3.2},
           {18.5, 5.0},
           {24.5, 2.4},
           {28.5, kFailed},
           {35.0, 1.8},
           {44.5, 6.5},
           {50.0, 1.3},
           {56.0, 1.04},
           {61.0, 1.0}},
          {{9.0, 5.5}, {16.5, 4.0}, {23.5, 2.0}, {26.5, kFailed}, {33.0, 1.8}, {45.0, 15.0}, {50.0, 2.1}, {55.5, 1.3}},
          {{8.0, 3.0}, {14.0, 2.6}, {19.0, 1.0}, {30.0, 11.0}, {40.0, 9.0}, {47.0, 3.7}, {52.0, 2.1}, {60.5, 4.5}}};
}

TEST(Score, CutOffTimesAndBudgetOfTheWorkedExample) {
  const ScoredSpace space = worked_example();
  EXPECT_EQ(space.failed(), 2u);
  EXPECT_EQ(space.draws_to_cutoff(), 8u);
  ASSERT_EQ(space.times().size(), 1000u);
  EXPECT_NEAR(space.times().front(), 7.25, 1e-9);
  EXPECT_NEAR(space.times().back(), 58.0, 1e-9);
  EXPECT_NEAR(space.budget_seconds(), 63.8, 1e-9);
}

TEST(Score, BaselineOfTheWorkedExample) {
  const auto baseline = worked_example().baseline();
  const double expected[] = {3.7, 2.15629197445078, 1.7991336446034387, 1.3, 1.04};
  const std::size_t at[] = {0, 250, 500, 750, 999};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(baseline[at[i]], expected[i], 1e-9) << at[i];
}

TEST(Score, CurveAndScoreOfTheWorkedExample) {
  const ScoredSpace space = worked_example();
  const SpaceScore score = score_runs(space, worked_runs());
  const double expected[] = {4.0, 2.0, 1.3, 1.3, 1.04};
  const std::size_t at[] = {0, 250, 500, 750, 999};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(score.values[at[i]], expected[i], 1e-12) << at[i];
  EXPECT_NEAR(score.score, 0.12715161828816154, 1e-9);
  EXPECT_NEAR(score.evaluations_to_5_percent, 10.0, 1e-12);
  EXPECT_NEAR(score.evaluations_to_1_percent, 10.5, 1e-12);
  EXPECT_NEAR(score.relative_at.at(25), (1.0 + 1.0 / 1.3 + 1.0) / 3, 1e-12);
}

TEST(Score, ARunThatFindsTheOptimumAtOnceScoresOne) {
  const ScoredSpace space = worked_example();
  EXPECT_NEAR(score_runs(space, {{{5.0, 1.0}}, {{5.0, 1.0}}}).score, 1.0, 1e-12);
}

TEST(Score, StrategiesAreScoredReproduciblyAndFailuresCount) {
  std::vector<ScoredSpace> spaces;
  spaces.push_back(worked_example());
  ScoreOptions options;
  options.repeats = 5;
  const auto once = score_strategies({"random", "brute_force"}, spaces, options);
  options.threads = 1;
  const auto again = score_strategies({"random", "brute_force"}, spaces, options);
  ASSERT_EQ(once.size(), 2u);
  EXPECT_EQ(once[0].spaces[0].evaluations_to_1_percent, again[0].spaces[0].evaluations_to_1_percent);
  EXPECT_EQ(once[1].spaces[0].evaluations_to_1_percent, 1);  // the optimum comes first
  EXPECT_EQ(once[1].spaces[0].relative_at.at(25), 1);
  EXPECT_GT(once[1].mean, once[0].mean);
}

TEST(Score, SaysWhatIsWrong) {
  std::vector<ScoredSpace> spaces;
  spaces.push_back(worked_example());
  EXPECT_THROW(score_strategies({"randon"}, spaces), UserError);
  ScoreOptions options;
  options.strategy_options["no_such_option"] = 1;
  EXPECT_THROW(score_strategies({"genetic"}, spaces, options), UserError);
  EXPECT_THROW(ScoredSpace(search_tests::line_recording({kFailed, kFailed}, {1, 1})), UserError);
  EXPECT_THROW(ScoredSpace(search_tests::line_recording({1, 2}, {1, 1}), "pareto(time, energy)"), UserError);
}

}  // namespace
}  // namespace ergotune
