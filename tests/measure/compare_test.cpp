#include "kernel/compare.hpp"
#include "base/half.hpp"
#include "ergotune/problem.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ergotune {
namespace {

template <class T>
BufferComparison compare_values(ElementType type, const std::vector<T>& actual, const std::vector<T>& expected,
                                double absolute = 1e-6, double relative = 1e-3) {
  return compare(type, std::as_bytes(std::span(actual)), std::as_bytes(std::span(expected)), absolute, relative);
}

bool is_to_a_thousandth(double error, double exact) {
  return error == exact || std::abs(error - exact) <= 1.01e-3 * exact;
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
  const BufferComparison found = compare_values(ElementType::float32, actual, expected);
  EXPECT_EQ(found.different, 2u);
  EXPECT_EQ(found.first_different, 4321u);
  EXPECT_EQ(found.message, "2 of 10000 elements differ, the first at 4321: 2.5 instead of 2");
  EXPECT_NEAR(found.error, 2.5, 1e-6);
}

TEST(Compare, LargeOutputsAsSmallOnes) {
  std::vector<std::uint8_t> expected(40'000'000, 2), actual = expected;
  for (const std::size_t i : {20'000'001u, 5'000'000u, 39'999'999u}) actual[i] = 5;
  const BufferComparison found = compare_values(ElementType::uint8, actual, expected);
  EXPECT_EQ(found.message, "3 of 40000000 elements differ, the first at 5000000: 5 instead of 2");
  EXPECT_NEAR(found.error, 1.5, 1e-6);
}

// What is said fast, block by block in single precision, is what element by element gives in double precision.
TEST(Compare, IsTheSameAsOneElementAfterTheOther) {
  EXPECT_TRUE(rc::check([] {
    constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
    const auto seed = *rc::gen::inRange(1, 1 << 30);
    const double absolute = *rc::gen::element(0.0, 1e-30, 1e-6, 1.0), relative = *rc::gen::element(0.0, 1e-7, 1e-3);
    const int specials = *rc::gen::inRange(0, 3);
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<float> actual, expected;
    for (int i = 0; i < 9000; ++i) {
      expected.push_back(static_cast<float>(uniform(random) * std::pow(10, 20 * uniform(random))));
      actual.push_back(static_cast<float>(expected.back() * (1 + 1.001 * relative * uniform(random) * (i % 7 == 0))));
    }
    for (int i = 0; i < specials; ++i)
      (i % 2 == 0 ? actual : expected)[random() % 9000] = std::vector<float>{kInf, -kInf, kNan, 0.0f}[random() % 4];
    std::size_t different = 0;
    double error = 0;
    for (std::size_t i = 0; i < 9000; ++i) {
      const std::vector<float> a{actual[i]}, e{expected[i]};
      const BufferComparison one = compare_values(ElementType::float32, a, e, absolute, relative);
      different += one.equal ? 0 : 1;
      error = std::max(error, one.error);
    }
    const BufferComparison all = compare_values(ElementType::float32, actual, expected, absolute, relative);
    RC_ASSERT(all.different == different);
    if (different == 0) RC_ASSERT(is_to_a_thousandth(all.error, error));
  }));
}

TEST(Compare, HalvesAreComparedAsTheNumbersThatTheyAre) {
  EXPECT_TRUE(rc::check([] {
    std::mt19937 random(static_cast<unsigned>(*rc::gen::inRange(1, 1 << 30)));
    const bool specials = *rc::gen::arbitrary<bool>();
    std::vector<std::uint16_t> actual, expected;
    std::vector<double> actual_reals, expected_reals;
    for (int i = 0; i < 9000; ++i) {
      const auto bits = static_cast<std::uint16_t>(specials ? random() : random() & 0x3fff);  // all, or below 2
      expected.push_back(bits);
      actual.push_back(random() % 50 == 0 ? static_cast<std::uint16_t>(bits ^ 1u) : bits);
      expected_reals.push_back(half_to_double(expected.back()));
      actual_reals.push_back(half_to_double(actual.back()));
    }
    for (const double relative : {0.0, 7e-4, 2e-3}) {
      const BufferComparison halves = compare_values(ElementType::float16, actual, expected, 1e-6, relative);
      const BufferComparison reals = compare_values(ElementType::float64, actual_reals, expected_reals, 1e-6, relative);
      RC_ASSERT(halves.different == reals.different);
      RC_ASSERT(halves.first_different == reals.first_different);
      RC_ASSERT(is_to_a_thousandth(halves.error, reals.error));
    }
  }));
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

TEST(Compare, WhatTheNumberOrOrderOfElementsDoesNotChange) {
  const auto message = [](Compare how, const std::vector<float>& actual, const std::vector<float>& expected) {
    return compare(how, ElementType::float32, std::as_bytes(std::span(actual)), std::as_bytes(std::span(expected)),
                   1e-6, 1e-3)
        .message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message(Compare::sum, {1, 2, 3, 4}, {10, 0, 0, 0}), "");
  EXPECT_EQ(message(Compare::sum, {1, 2, 3, 5}, {10, 0, 0, 0}), "its sum is 11 instead of 10");
  EXPECT_EQ(message(Compare::minimum, {1, -2, 3, 4}, {-2, 0, 0, 0}), "");
  EXPECT_EQ(message(Compare::maximum, {1, 2, 3, 4}, {5, 0, 0, 0}), "its max is 4 instead of 5");
  EXPECT_EQ(message(Compare::sorted, {3, nan, 1, 2}, {1, 2, 3, nan}), "");
  EXPECT_EQ(message(Compare::sorted, {3, 3, 1, 2}, {1, 2, 3, 4}),
            "sorted, 1 of 4 elements differ, the first at 3: 3 instead of 4");
  EXPECT_EQ(message(Compare::elements, {1, 2}, {1, 2}), "");
  for (const Compare how : {Compare::sum, Compare::minimum, Compare::maximum})
    EXPECT_NE(message(how, {nan, 1}, {1, 1}), "") << to_string(how) << " of a NaN is no number";
  EXPECT_EQ(compare(Compare::sum, ElementType::uint8, std::as_bytes(std::span("\xff\x01", 2)),
                    std::as_bytes(std::span("\x80\x80", 2)), 0, 0)
                .message,
            "");
}

// The default tolerances are for rounding: a count that is one too small is wrong.
TEST(Compare, WholeNumbersAreEqualUnlessAToleranceIsGiven) {
  Verification verification;
  const std::vector<std::int32_t> counts{7, 131330}, expected{7, 131331};
  const auto equal = [&] {
    return compare_output(verification, "counts", ElementType::int32, std::as_bytes(std::span(counts)),
                          std::as_bytes(std::span(expected)))
        .equal;
  };
  EXPECT_FALSE(equal());
  verification.compare["counts"] = Compare::sum;
  EXPECT_FALSE(equal());
  verification.absolute_tolerance = 1;
  EXPECT_TRUE(equal());
  const std::vector<float> sums{131330}, expected_sums{131331};
  verification = {};
  EXPECT_TRUE(compare_output(verification, "sums", ElementType::float32, std::as_bytes(std::span(sums)),
                             std::as_bytes(std::span(expected_sums)))
                  .equal);
}

TEST(Compare, OfAnOutputNamesTheToleranceAndItsKeys) {
  Verification verification;
  verification.absolute_tolerance = 0.125;
  verification.relative_tolerance = 0.0625;
  const std::vector<float> actual{3}, expected{2};
  const std::string message = compare_output(verification, "y", ElementType::float32, std::as_bytes(std::span(actual)),
                                             std::as_bytes(std::span(expected)))
                                  .message;
  for (const char* part : {"0.125", "0.0625", "absolute_tolerance", "relative_tolerance"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  const std::string exact =
      compare_output({}, "n", ElementType::int32, std::as_bytes(std::span(actual)), std::as_bytes(std::span(expected)))
          .message;
  EXPECT_NE(exact.find("absolute_tolerance"), std::string::npos) << exact;
  EXPECT_EQ(exact.find("1e-"), std::string::npos) << "the default tolerance is not applied to whole numbers: " << exact;
}

class UsualTolerance : public testing::Test {
 protected:
  Verification verification_;

  bool equal(const std::vector<float>& actual, const std::vector<float>& expected) const {
    return compare_output(verification_, "y", ElementType::float32, std::as_bytes(std::span(actual)),
                          std::as_bytes(std::span(expected)))
        .equal;
  }
};

// A cross section in m2 is 1e-28; a tolerance of 1e-6 would accept everything.
TEST_F(UsualTolerance, FollowsTheUnit) {
  EXPECT_FALSE(equal({0, 0, 0}, {1e-28f, -2e-28f, 0}));
  EXPECT_FALSE(equal({1e-28f, -2e-28f, 2e-29f}, {1e-28f, -2e-28f, 0}));
  EXPECT_TRUE(equal({1e-28f, -2e-28f, 1e-33f}, {1e-28f, -2e-28f, 0})) << "rounding near zero";
  EXPECT_TRUE(equal({5e-7f, 1}, {0, 1}));
  EXPECT_TRUE(equal({5e-7f, 0}, {0, 0})) << "nothing shows the size of the numbers";
  verification_.absolute_tolerance = 1e-6;
  EXPECT_TRUE(equal({0}, {1e-8f}));
}

TEST_F(UsualTolerance, PermitsRoundingOfSumsThatCancel) {
  std::vector<float> sums(100);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = 10.0f * static_cast<float>(i) - 505;
  std::vector<float> rounded = sums;
  for (float& x : rounded) x += 2e-3f;
  EXPECT_TRUE(equal(rounded, sums));
  verification_.relative_tolerance = 1e-7;
  EXPECT_FALSE(equal(rounded, sums)) << "one relative tolerance decides";
}

// Distances: 1e30 where there is no path.
TEST_F(UsualTolerance, IgnoresValuesThatMarkElements) {
  for (const float mark : {1e30f, -9999.0f}) {
    std::vector<float> distances(100, mark), wrong(100, mark), tiny(100, mark);
    for (std::size_t i = 0; i < 30; ++i) {
      distances[i] = 1 + static_cast<float>(i) / 30;
      wrong[i] = 1.01f * distances[i];
      tiny[i] = 1e-20f * distances[i];
    }
    EXPECT_TRUE(equal(distances, distances));
    EXPECT_FALSE(equal(wrong, distances));
    std::vector<float> zero = tiny;
    std::fill_n(zero.begin(), 30, 0.0f);
    EXPECT_FALSE(equal(zero, tiny));
  }
}

TEST_F(UsualTolerance, OfAFewLargeElementsLeavesTheOthersCompared) {
  std::vector<float> decay(1000), wrong(1000);
  for (std::size_t i = 0; i < decay.size(); ++i) {
    decay[i] = 1e6f * std::exp(-static_cast<float>(i) / 50);
    wrong[i] = i < 500 ? decay[i] : 1.1f * decay[i];
  }
  EXPECT_FALSE(equal(wrong, decay));
}

TEST(Compare, NamesTheRemedyWhereOnlyTheOrderDiffers) {
  const auto message = [](const std::vector<float>& actual, const std::vector<float>& expected) {
    return compare_output({}, "found", ElementType::float32, std::as_bytes(std::span(actual)),
                          std::as_bytes(std::span(expected)))
        .message;
  };
  EXPECT_NE(message({3, 1, 2}, {1, 2, 3}).find("found = \"sorted\""), std::string::npos);
  EXPECT_EQ(message({3, 1, 2}, {1, 2, 4}).find("sorted"), std::string::npos);
}

template <class T>
void check_whole_numbers(ElementType type) {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  EXPECT_TRUE(compare_values<T>(type, {low, 3, high}, {low, 3, high}, 0, 0).equal);
  const BufferComparison found = compare_values<T>(type, {3, 100, 5}, {3, 101, 5}, 0, 0);
  EXPECT_EQ(found.message, "1 of 3 elements differ, the first at 1: 100 instead of 101");
  const std::vector<T> some{3, 1, 2}, sorted{1, 2, 3};
  EXPECT_TRUE(
      compare(Compare::sorted, type, std::as_bytes(std::span(some)), std::as_bytes(std::span(sorted)), 0, 0).equal);
}

TEST(Compare, WholeNumbersOfEverySize) {
  check_whole_numbers<std::int8_t>(ElementType::int8);
  check_whole_numbers<std::uint8_t>(ElementType::uint8);
  check_whole_numbers<std::int16_t>(ElementType::int16);
  check_whole_numbers<std::uint16_t>(ElementType::uint16);
  check_whole_numbers<std::int32_t>(ElementType::int32);
  check_whole_numbers<std::uint32_t>(ElementType::uint32);
  check_whole_numbers<std::int64_t>(ElementType::int64);
  check_whole_numbers<std::uint64_t>(ElementType::uint64);
}

}  // namespace
}  // namespace ergotune
