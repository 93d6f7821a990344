// Scores of runs that are not as smooth as the worked example: none, empty, failing, or of what is to be
// maximised.
#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/search/score.hpp"
#include "fixtures.hpp"
#include "search/score_baseline.hpp"

namespace ergotune {
namespace {

using search_tests::line_recording;
constexpr double kFailed = std::numeric_limits<double>::infinity();

ScoredSpace ten(const std::string& objective = {}) {
  return ScoredSpace(line_recording({4, 2, 3, 8, 5, 6, 7, 10, 9, 12}, std::vector<double>(10, 2.0)),
                     objective);
}

TEST(ScoreCurve, WithoutAnySuccessStandsAtTheWorst) {
  const ScoredSpace space = ten();
  const std::vector<std::vector<ForeignEvaluation>> nothing[] = {{}, {{}}, {{{1, kFailed}, {3, kFailed}}}};
  for (const auto& runs : nothing) {
    const SpaceScore score = score_runs(space, runs);
    EXPECT_EQ(score.values.front(), 12);
    EXPECT_EQ(score.values.back(), 12);
    EXPECT_LT(score.score, 0);
    EXPECT_EQ(score.relative_at.at(25), 0);
    EXPECT_EQ(score.successes_5_percent + score.successes_1_percent, 0u);
  }
  EXPECT_EQ(score_runs(space, nothing[0]).evaluations, 0);
  EXPECT_EQ(score_runs(space, nothing[2]).evaluations_to_5_percent, 2) << "what was spent: a lower bound";
  EXPECT_EQ(score_runs(space, nothing[2]).space, "line");
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

TEST(ScoreCurve, LooksAtTheFirstEvaluationsOnly) {
  std::vector<ForeignEvaluation> run;
  for (int i = 0; i < 300; ++i)
    run.push_back({0.01 * i, i < 25 ? 8.0 : i < 50 ? 6.0 : i < 100 ? 5.0 : i < 200 ? 4.0 : 2.0});
  const SpaceScore score = score_runs(ten(), {run});
  EXPECT_EQ(score.relative_at,
            (std::map<int, double>{{25, 2 / 8.0}, {50, 2 / 6.0}, {100, 2 / 5.0}, {200, 2 / 4.0}}));
}

TEST(ScoreCurve, OfWhatIsMaximisedIsTurned) {
  const ScoredSpace space = ten("max time");
  EXPECT_EQ(space.optimum(), -12);
  const SpaceScore score = score_runs(space, {{{1, -8}, {2, -11.5}, {3, -11.9}}});
  EXPECT_NEAR(score.relative_at.at(25), 11.9 / 12, 1e-12);
  EXPECT_EQ(score.evaluations_to_5_percent, 2) << "-11.4 is 5 % from it";
  EXPECT_EQ(score.evaluations_to_1_percent, 3) << "-11.88 is 1 % from it";
}

TEST(ScoreCurve, OfAnOptimumOfZeroIsRelativeToNothing) {
  const ScoredSpace space = ten("time - 2");
  EXPECT_EQ(space.optimum(), 0);
  EXPECT_EQ(score_runs(space, {{{1, 3}}}).relative_at.at(25), 0);
  EXPECT_EQ(score_runs(space, {{{1, 3}, {2, 0}}}).relative_at.at(25), 1);
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

TEST(ScoreCurve, WhereThereIsNothingToGainIsZero) {
  const ScoredSpace space(line_recording({3, 3, 3}, {1, 1, 1}));
  EXPECT_EQ(score_runs(space, {{{1, 3}}}).score, 0);
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

TEST(ScoredSpaces, AreNamedWithoutTheEndingsOfFiles) {
  for (const auto& [file, name] : {std::pair{"a/gemm.json.gz", "gemm"},
                                   {"gemm.T4.json", "gemm"},
                                   {"gemm.T4", "gemm"},
                                   {"gemm.csv", "gemm"},
                                   {".gz", ".gz"},
                                   {"gemm", "gemm"},
                                   {"", "line"}}) {
    Recording recording = line_recording({1, 2}, {1, 1});
    recording.file = file;
    EXPECT_EQ(ScoredSpace(std::move(recording)).name(), name);
  }
}

TEST(ScoredSpaces, TakeTheBestOfTheWholeRecordingForTheBest) {
  // time / best(time) of each, also of those that come before the best
  const ScoredSpace space = ten("time / best(time)");
  EXPECT_EQ(space.optimum(), 1);
  EXPECT_EQ(score_runs(space, {{{1, 2.0}}}).relative_at.at(25), 0.5);
  EXPECT_EQ(space.baseline().front(), ten().baseline().front() / 2);
  const ScoredSpace bound = ten("max time subject to time <= 2 * best(time)");
  EXPECT_EQ(bound.optimum(), -4);
  EXPECT_EQ(bound.failed(), 0u);
}

TEST(ScoredSpaces, WithoutCostsCountEvaluations) {
  const ScoredSpace space(
      line_recording({4, 2, 3, 8, 5, 6, 7, 10, kFailed, 12}, std::vector<double>(10, 0.0)));
  EXPECT_NEAR(space.times().front(), 1, 1e-12) << "a draw is a second";
  EXPECT_NEAR(space.budget_seconds(), 1.1 * static_cast<double>(space.draws_to_cutoff()), 1e-12);
  EXPECT_EQ(space.failed(), 1u);
}

// The expected best of draws without replacement, the i-th of n in expectation at i (n + 1) / (k + 1) for k
// draws.
TEST(ScoredSpaces, DrawsToACutoffAreThoseThatReachItOnAverage) {
  const std::vector<double> descending{10, 9, 8, 7, 6, 5, 4, 3, 2, 1};  // median 5.5
  EXPECT_EQ(search::draws_to_cutoff(descending, 0), 1u);                // down to 5.5: position 5, 5 / 6
  EXPECT_EQ(search::draws_to_cutoff(descending, 0.5), 2u);              // to 3.25: position 7, 7 / 4
  EXPECT_EQ(search::draws_to_cutoff(descending, 0.9), 3u);  // to 1.45: the optimum; position 8, 8 / 3
  EXPECT_EQ(search::draws_to_cutoff(descending, 1), 5u);    // the optimum itself: position 9, 9 / 2
  EXPECT_EQ(search::draws_to_cutoff(std::vector<double>{3}, 0.95), 0u);
}

TEST(ScoredSpaces, RanksAreOfTheWorstThatIsNoBetter) {
  search::ScoreBaseline baseline;
  baseline.descending = {9, 7, 7, 4};
  EXPECT_EQ(baseline.rank(20), 0u);
  EXPECT_EQ(baseline.rank(9), 0u);
  EXPECT_EQ(baseline.rank(8), 0u);
  EXPECT_EQ(baseline.rank(7), 2u);
  EXPECT_EQ(baseline.rank(5), 2u);
  EXPECT_EQ(baseline.rank(4), 3u);
  EXPECT_EQ(baseline.rank(1), 3u);
}

}  // namespace
}  // namespace ergotune
