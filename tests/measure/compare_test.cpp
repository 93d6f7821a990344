#include "measure/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ergotune {
namespace {

template <class T>
Comparison compare_values(ElementType type, const std::vector<T>& actual, const std::vector<T>& expected,
                          double absolute = 1e-6, double relative = 1e-3) {
  return compare(type, std::as_bytes(std::span(actual)), std::as_bytes(std::span(expected)), absolute,
                 relative);
}

TEST(Compare, TolerancesAreAbsolutePlusRelative) {
  EXPECT_TRUE(compare_values<float>(ElementType::float32, {1000.9f}, {1000.0f}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {1001.5f}, {1000.0f}).equal);
  EXPECT_TRUE(compare_values<double>(ElementType::float64, {5e-7}, {0.0}).equal);
  EXPECT_FALSE(compare_values<double>(ElementType::float64, {5e-6}, {0.0}).equal);
}

TEST(Compare, NamesHowManyDifferAndTheFirst) {
  std::vector<float> expected(10000, 2.0f), actual = expected;
  actual[4321] = 2.5f;
  actual[9999] = 7.0f;
  const Comparison found = compare_values(ElementType::float32, actual, expected);
  EXPECT_EQ(found.different, 2u);
  EXPECT_EQ(found.first_different, 4321u);
  EXPECT_EQ(found.message, "2 of 10000 elements differ, the first at 4321: 2.5 instead of 2");
  EXPECT_NEAR(found.error, 2.5, 1e-6);
}

TEST(Compare, NanAgreesWithNanOnly) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare_values<float>(ElementType::float32, {nan, inf}, {nan, inf}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {nan}, {1.0f}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {1.0f}, {nan}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {inf}, {1.0f}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {1.0f}, {inf}).equal);
  EXPECT_FALSE(compare_values<float>(ElementType::float32, {-inf}, {inf}).equal);
  EXPECT_TRUE(std::isinf(compare_values<float>(ElementType::float32, {nan}, {1.0f}).error));
}

TEST(Compare, IntegersAndOtherSizes) {
  EXPECT_TRUE(compare_values<std::int32_t>(ElementType::int32, {5, -7}, {5, -7}, 0, 0).equal);
  EXPECT_FALSE(compare_values<std::int32_t>(ElementType::int32, {5, -7}, {5, -8}, 0, 0).equal);
  EXPECT_FALSE(compare_values<std::int32_t>(ElementType::int32, {5}, {5, 6}).equal);
}

}  // namespace
}  // namespace ergotune
