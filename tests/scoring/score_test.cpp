#include "scoring/score.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "recorded_data.hpp"
#include "scoring/score_baseline.hpp"
#include "search/fixtures.hpp"

namespace ergotune {
namespace {

using search::decreasing_fit, search::pchip;

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

// Runs that are not as smooth as the worked example: failing, or of what is to be maximised.

ScoredSpace ten(const std::string& objective = {}) {
  return ScoredSpace(search_tests::line_recording({4, 2, 3, 8, 5, 6, 7, 10, 9, 12}, std::vector<double>(10, 2.0)),
                     objective);
}

TEST(ScoreCurve, EvaluationsAreCountedOverAllRuns) {
  const SpaceScore score =
      score_runs(ten(), {{{1, 4}, {2, 2.1}, {3, 2.02}}, {{1, 2}}, {{1, 5}, {2, 4}}, {{1, 2.11}, {2, 8}}});
  EXPECT_EQ(score.evaluations, (3 + 1 + 2 + 2) / 4.0);
  EXPECT_EQ(score.successes_5_percent, 2u);
  EXPECT_EQ(score.evaluations_to_5_percent, (2 + 1 + 2 + 2) / 2.0);
  EXPECT_EQ(score.successes_1_percent, 2u);
  EXPECT_EQ(score.evaluations_to_1_percent, (3 + 1 + 2 + 2) / 2.0);
  EXPECT_NEAR(score.relative_at.at(25), (2 / 2.02 + 1 + 2 / 4.0 + 2 / 2.11) / 4, 1e-12);
}

TEST(ScoreCurve, OfWhatIsMaximisedIsTurned) {
  const ScoredSpace space = ten("max time");
  EXPECT_EQ(space.optimum(), -12);
  const SpaceScore score = score_runs(space, {{{1, -8}, {2, -11.5}, {3, -11.9}}});
  EXPECT_NEAR(score.relative_at.at(25), 11.9 / 12, 1e-12);
  EXPECT_EQ(score.evaluations_to_5_percent, 2) << "-11.4 is 5 % from it";
  EXPECT_EQ(score.evaluations_to_1_percent, 3) << "-11.88 is 1 % from it";
}

TEST(ScoredSpaces, WithoutCostsCountEvaluations) {
  const ScoredSpace space(
      search_tests::line_recording({4, 2, 3, 8, 5, 6, 7, 10, kFailed, 12}, std::vector<double>(10, 0.0)));
  EXPECT_NEAR(space.times().front(), 1, 1e-12) << "a draw is a second";
  EXPECT_NEAR(space.budget_seconds(), 1.1 * static_cast<double>(space.draws_to_cutoff()), 1e-12);
  EXPECT_EQ(space.failed(), 1u);
}

/// ERGOTUNE_SCORE_REPEATS sets the repeats: 20 for the figures in docs/measurements.
TEST(RecordedSpaces, AutoScoresFarAboveThePeersBest) {
  std::vector<ScoredSpace> spaces;
  for (const std::string name :
       {"convolution_A4000", "convolution_MI250X", "dedispersion_A4000", "dedispersion_MI250X"}) {
    spaces.emplace_back(load_recording(test::recorded_data() / "caches" / (name + ".json.gz")));
    EXPECT_EQ(spaces.back().name(), name);
  }
  EXPECT_EQ(spaces[1].draws_to_cutoff(), 51u);  // as the method's own reference has it
  ScoreOptions options;
  const char* repeats = std::getenv("ERGOTUNE_SCORE_REPEATS");
  options.repeats = repeats != nullptr ? std::atoi(repeats) : 2;
  const auto scores = score_strategies({"auto", "random"}, spaces, options);
  EXPECT_GE(scores[0].mean, 0.75);
  EXPECT_LT(std::abs(scores[1].mean), 0.35);  // random search is the zero of the scale
  for (const auto& space : scores[0].spaces) EXPECT_GE(space.score, 0.30) << space.space;
}

// The fits of scoring, against their published forms.

using Numbers = std::vector<double>;

void expect_near(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << "at " << i;
}

// Fritsch and Carlson's shape-preserving cubics as in C. Moler, "Numerical Computing with MATLAB" (2004), section 3.6.
TEST(Interpolation, PchipIsThePublishedOne) {
  expect_near(pchip(Numbers{0, 1, 3, 4, 7}, Numbers{0, 2, 3, 7, 8}, Numbers{0.5, 1.5, 2.5, 3.25, 3.75, 5, 6.5}),
              {1.2053571428571428, 2.306105212355212, 2.650458494208494, 3.7282422347720856, 6.3198618394513915,
               7.577667219458264, 7.97567716970702});
  expect_near(pchip(Numbers{0, 2, 5, 6}, Numbers{1, 2, 4, 8}, Numbers{1, 3, 4, 5.5}),
              {1.4668238993710692, 2.4818025572742552, 3.0306910684269175, 5.557995495495495});
}

TEST(Interpolation, PchipOfFewPointsAndBeyondThem) {
  expect_near(pchip(Numbers{1, 3}, Numbers{10, 20}, Numbers{0, 1, 1.5, 2, 3, 4}), {10, 10, 12.5, 15, 20, 20});
  expect_near(pchip(Numbers{1}, Numbers{10}, Numbers{0, 1, 2}), {10, 10, 10});
  expect_near(pchip(Numbers{1, 2, 4}, Numbers{3, 2, 1}, Numbers{-9, 1, 4, 9}), {3, 3, 1, 1});
  const Numbers none = pchip(Numbers{}, Numbers{}, Numbers{1, 2});
  ASSERT_EQ(none.size(), 2u);
  EXPECT_TRUE(std::isnan(none[0]) && std::isnan(none[1]));
}

TEST(Interpolation, DecreasingFitWeighsWhatItPools) {
  // at 1 the mean of three is 2, then 8 pools with it: (3 * 2 + 8) / 4 = 3.5, which 4 pools with: (3.5 * 4 +
  // 4) / 5
  expect_near(decreasing_fit(Numbers{2, 1, 1, 1, 3, 5}, Numbers{8, 1, 2, 3, 4, 1}, Numbers{1, 2, 3, 3.5, 4, 5}),
              {3.6, 3.6, 3.6, 2.95, 2.3, 1});
  expect_near(decreasing_fit(Numbers{1, 2, 3}, Numbers{6, 4, 1}, Numbers{0, 1.25, 2, 2.5, 9}), {6, 5.5, 4, 2.5, 1});
}

TEST(Interpolation, DecreasingFitOfOnePointAndOfNone) {
  expect_near(decreasing_fit(Numbers{2}, Numbers{7}, Numbers{1, 2, 3}), {7, 7, 7});
  const Numbers none = decreasing_fit(Numbers{}, Numbers{}, Numbers{1});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_TRUE(std::isnan(none[0]));
}

}  // namespace
}  // namespace ergotune
