// Scores of runs that are not as smooth as the worked example: none, empty, failing, or of what is to be
// maximised.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/scoring/score.hpp"
#include "search/scoring/score_baseline.hpp"

namespace ergotune {
namespace {

using search_tests::line_recording;
constexpr double kFailed = std::numeric_limits<double>::infinity();

ScoredSpace ten(const std::string& objective = {}) {
  return ScoredSpace(line_recording({4, 2, 3, 8, 5, 6, 7, 10, 9, 12}, std::vector<double>(10, 2.0)), objective);
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

TEST(ScoreCurve, IsTheSameWhateverTheUnitOfTime) {
  const std::vector<double> values{4, 2, 3, 8, 5, 6, 7, 10, kFailed, 12};
  const auto scored = [&](double unit) {
    std::vector<double> costs;
    for (int i = 0; i < 10; ++i) costs.push_back(unit * (3 + i % 4));
    return ScoredSpace(line_recording(values, costs));
  };
  const ScoredSpace seconds = scored(1);
  for (const double unit : {1.0 / 1024, 1.0 / 8, 64.0}) {
    const ScoredSpace other = scored(unit);
    EXPECT_EQ(other.baseline(), seconds.baseline()) << unit;
    EXPECT_NEAR(other.budget_seconds(), unit * seconds.budget_seconds(), 1e-9 * unit);
    const SpaceScore score = score_runs(other, {{{unit, 8}, {5 * unit, 3}, {9 * unit, 2}}});
    EXPECT_EQ(score.values, score_runs(seconds, {{{1, 8}, {5, 3}, {9, 2}}}).values) << unit;
  }
}

TEST(ScoreCurve, CombinesByMeansAndGeometricMeans) {
  SpaceScore first, second;
  first.improvement.assign(search::kScorePoints, 0.5);
  second.improvement.assign(search::kScorePoints, 1.0);
  first.improvement[3] = -0.5;
  first.evaluations_to_5_percent = 4;
  second.evaluations_to_5_percent = 9;
  first.evaluations_to_1_percent = 2;
  second.evaluations_to_1_percent = 32;
  const StrategyScore both = combine_scores("some", {first, second});
  EXPECT_EQ(both.strategy, "some");
  ASSERT_EQ(both.improvement.size(), search::kScorePoints);
  EXPECT_EQ(both.improvement[2], 0.75);
  EXPECT_EQ(both.improvement[3], 0.25);
  EXPECT_NEAR(both.mean, 0.75 - 0.5 / static_cast<double>(search::kScorePoints), 1e-12);
  EXPECT_NEAR(both.evaluations_to_5_percent, 6, 1e-12);
  EXPECT_NEAR(both.evaluations_to_1_percent, 8, 1e-12);
  EXPECT_EQ(both.spaces.size(), 2u);
}

TEST(ScoredSpaces, WithoutCostsCountEvaluations) {
  const ScoredSpace space(line_recording({4, 2, 3, 8, 5, 6, 7, 10, kFailed, 12}, std::vector<double>(10, 0.0)));
  EXPECT_NEAR(space.times().front(), 1, 1e-12) << "a draw is a second";
  EXPECT_NEAR(space.budget_seconds(), 1.1 * static_cast<double>(space.draws_to_cutoff()), 1e-12);
  EXPECT_EQ(space.failed(), 1u);
}

}  // namespace
}  // namespace ergotune
