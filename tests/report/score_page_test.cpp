#include "ergotune/report/score_page.hpp"

#include <gmock/gmock.h>

#include "search/fixtures.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ScorePage, HoldsEveryStrategyAndSpaceAndLoadsNothing) {
  std::vector<double> values, seconds;
  for (int i = 0; i < 40; ++i) {
    values.push_back(1 + (7 * i) % 40);
    seconds.push_back(1);
  }
  std::vector<ScoredSpace> spaces;
  spaces.emplace_back(search_tests::line_recording(values, seconds));
  ScoreOptions options;
  options.repeats = 2;
  const std::string page = score_page(score_strategies({"random", "brute_force"}, spaces, options), spaces);
  EXPECT_THAT(page, HasSubstr("replayed"));
  EXPECT_THAT(page, HasSubstr("<td>random</td>"));
  EXPECT_THAT(page, HasSubstr(">brute_force</text>"));
  EXPECT_THAT(page, HasSubstr(">random search (expected)</text>"));
  EXPECT_THAT(page, HasSubstr(">" + spaces[0].name() + "</text>"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

}  // namespace
}  // namespace ergotune
