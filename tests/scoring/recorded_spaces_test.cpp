// The default strategy on the recorded spaces. ERGOTUNE_SCORE_REPEATS sets the
// repeats (20 for the figures in docs/measurements; 2 here, so that it takes seconds).
#include <gtest/gtest.h>

#include <cstdlib>

#include "recorded_data.hpp"
#include "scoring/score.hpp"
#include "search/fixtures.hpp"

namespace ergotune {
namespace {

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

}  // namespace
}  // namespace ergotune
