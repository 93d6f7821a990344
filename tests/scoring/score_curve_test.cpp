// Scores of runs that are not as smooth as the worked example: none, empty, failing, or of what is to be
// maximised.
#include <gtest/gtest.h>

#include <cmath>

#include "scoring/score.hpp"
#include "scoring/score_baseline.hpp"
#include "search/fixtures.hpp"

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

TEST(ScoredSpaces, WithoutCostsCountEvaluations) {
  const ScoredSpace space(line_recording({4, 2, 3, 8, 5, 6, 7, 10, kFailed, 12}, std::vector<double>(10, 0.0)));
  EXPECT_NEAR(space.times().front(), 1, 1e-12) << "a draw is a second";
  EXPECT_NEAR(space.budget_seconds(), 1.1 * static_cast<double>(space.draws_to_cutoff()), 1e-12);
  EXPECT_EQ(space.failed(), 1u);
}

}  // namespace
}  // namespace ergotune
