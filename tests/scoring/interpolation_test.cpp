// The fits of scoring, against their published forms worked out elsewhere.
#include "scoring/interpolation.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ergotune::search {
namespace {

using Numbers = std::vector<double>;

void expect_near(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << "at " << i;
}

// Fritsch and Carlson's shape-preserving cubics as in C. Moler, "Numerical Computing with MATLAB" (2004),
// section 3.6.
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
}  // namespace ergotune::search
