#include "search/importance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.hpp"
#include "fixtures.hpp"

namespace ergotune {
namespace {

using namespace search_tests;

TEST(Importance, TellsWhatMattersWhatActsTogetherAndWhatNeverWorked) {
  std::vector<Value> six{1, 2, 3, 4, 5, 6};
  const SearchSpace space = SearchSpace::build(
      {parameter("main", six), parameter("left", {-1, 1}), parameter("right", {-1, 1}), parameter("idle", six)}, {});
  std::vector<Judged> results;
  Random random(5);
  for (const ConfigurationIndex index : space.sample_distinct(120, random)) {
    const Configuration c = space.configuration(index);
    results.push_back({c, std::nullopt});
    const double noise = 0.05 * random.normal();
    if (c[3] != Value(6))
      results.back().value = std::exp(0.2 * c[0].as_real() + 0.3 * c[1].as_real() * c[2].as_real() + noise);
  }
  const Importance importance = importance_of(space.parameters(), results);
  ASSERT_GE(importance.shares.size(), 2u);
  const auto found = [&](const std::vector<std::size_t>& of) {
    for (const auto& one : importance.shares)
      if (one.parameters == of) return one;
    return Importance::Share{of, 0, 0, 0};
  };
  // variances of the truth: 0.2^2 * 35 / 12 and 0.3^2, i.e. 0.56 and 0.44 of it
  for (const auto& [of, truth] :
       std::vector<std::pair<std::vector<std::size_t>, double>>{{{0}, 0.564}, {{1, 2}, 0.435}}) {
    EXPECT_NEAR(found(of).share, truth, 0.1);
    EXPECT_LT(found(of).low, truth);
    EXPECT_GT(found(of).high, truth);
    EXPECT_LT(found(of).high - found(of).low, 0.3);
    EXPECT_GT(found(of).high - found(of).low, 0.001);
  }
  EXPECT_LT(found({3}).share, 0.05);
  EXPECT_LT(found({1}).share + found({2}).share, 0.15);
  ASSERT_EQ(importance.ruled_out.size(), 1u);
  EXPECT_EQ(importance.ruled_out[0].parameter, 3u);
  EXPECT_EQ(importance.ruled_out[0].value, Value(6));
  EXPECT_TRUE(importance_of(space.parameters(), {results.begin(), results.begin() + 10}).shares.empty());

  // whoever reads the same results in another order tells the same numbers
  std::reverse(results.begin(), results.end());
  EXPECT_EQ(importance_document(space.parameters(), importance),
            importance_document(space.parameters(), importance_of(space.parameters(), results)));
}

/// Shares by the parameters' numbers; 0 for what is left out.
double share_of(const Importance& importance, const std::vector<std::size_t>& of) {
  for (const auto& one : importance.shares)
    if (one.parameters == of) return one.share;
  return 0;
}

/// Every configuration, judged.
std::vector<Judged> judged(const SearchSpace& space,
                           const std::function<std::optional<double>(const Configuration&)>& value) {
  std::vector<Judged> results;
  for (ConfigurationIndex i = 0; i < space.size(); ++i)
    results.push_back({space.configuration(i), value(space.configuration(i))});
  return results;
}

// The variance of 1 to n is (n^2 - 1) / 12.
TEST(Importance, OfASumIsTheShareOfItsVariance) {
  const SearchSpace space =
      SearchSpace::build({parameter("a", {1, 2, 3, 4, 5, 6}), parameter("b", {1, 2, 3, 4, 5})}, {});
  const auto sum = [](const Configuration& c) { return 0.6 * c[0].as_real() + 0.4 * c[1].as_real(); };
  const double of_a = 0.36 * 35 / 12, of_b = 0.16 * 2;
  const auto expect = [&](const Importance& importance) {
    EXPECT_NEAR(share_of(importance, {0}), of_a / (of_a + of_b), 0.01);
    EXPECT_NEAR(share_of(importance, {1}), of_b / (of_a + of_b), 0.01);
    ASSERT_EQ(importance.shares.size(), 2u) << "no pair";
    EXPECT_EQ(importance.shares[0].parameters, std::vector<std::size_t>{0}) << "the largest first";
    for (const auto& share : importance.shares) {
      EXPECT_LT(share.low, share.share);
      EXPECT_GT(share.high, share.share);
      EXPECT_GE(share.low, share.share - 0.1);
      EXPECT_LE(share.high, std::min(1.0, share.share + 0.1));
    }
  };
  expect(importance_of(space.parameters(), judged(space, [&](auto& c) { return std::exp(sum(c)); })));
  // what has a value of 0 or less is taken as it is
  expect(importance_of(space.parameters(), judged(space, [&](auto& c) { return sum(c) - 3; })));
  expect(importance_of(space.parameters(), judged(space, [&](auto& c) { return sum(c) - 1; })));
}

// Noise has a variance as well, and parameters that do nothing divide it among themselves.
TEST(Importance, OfNoiseIsNotReported) {
  const SearchSpace one = line_space(40);
  const SearchSpace two =
      SearchSpace::build({parameter("a", {1, 2, 3, 4, 5, 6}), parameter("b", {1, 2, 3, 4, 5, 6, 7, 8})}, {});
  Random random(17);
  int reported = 0;
  for (int trial = 0; trial < 25; ++trial) {
    for (const SearchSpace* space : {&one, &two}) {
      const Importance importance =
          importance_of(space->parameters(), judged(*space, [&](auto&) { return std::exp(0.02 * random.normal()); }));
      reported += !importance.shares.empty();
      EXPECT_TRUE(importance.explained);
    }
  }
  EXPECT_LE(reported, 2);
  const Importance half = importance_of(two.parameters(), judged(two, [&](const Configuration& c) {
                                          return std::exp(0.02 * c[0].as_real() + 0.034 * random.normal());
                                        }));
  ASSERT_FALSE(half.shares.empty()) << "half of the variance is an effect";
  EXPECT_GT(*half.explained, 0.15);
  EXPECT_LT(*half.explained, 0.8);
}

// With two parameters every combination is the only one of its kind.
TEST(Importance, OfTwoParametersKnowsWhatTheyDoTogether) {
  const SearchSpace space = SearchSpace::build({parameter("a", {-2, -1, 1, 2}), parameter("b", {-2, -1, 0, 1, 2})}, {});
  const Importance importance = importance_of(
      space.parameters(), judged(space, [](auto& c) { return std::exp(0.4 * c[0].as_real() * c[1].as_real()); }));
  EXPECT_GT(share_of(importance, {0, 1}), 0.9);
  EXPECT_EQ(importance.shares.front().parameters, (std::vector<std::size_t>{0, 1}));
}

TEST(Importance, RulesOutWhatFailedFiveTimesAndNeverWorked) {
  const SearchSpace space = SearchSpace::build({parameter("a", {1, 2, 3}), parameter("b", {1, 2, 3, 4, 5, 6})}, {});
  const auto ruled_out = [&](const std::function<bool(const Configuration&)>& works, std::size_t tried = 18) {
    auto results = judged(space, [&](auto& c) { return works(c) ? std::optional(1.0) : std::nullopt; });
    results.resize(tried);
    return importance_of(space.parameters(), results).ruled_out;
  };
  const auto found = ruled_out([](auto& c) { return c[0] != Value(3); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].parameter, 0u);
  EXPECT_EQ(found[0].value, Value(3));
  EXPECT_EQ(found[0].tried, 6u);
  EXPECT_EQ(ruled_out([](auto& c) { return c[0] != Value(3); }, 17).size(), 1u) << "five times";
  EXPECT_TRUE(ruled_out([](auto& c) { return c[0] != Value(3); }, 16).empty()) << "four times are too few";
  EXPECT_TRUE(ruled_out([](auto& c) { return c[0] != Value(3) || c[1] == Value(1); }).empty()) << "it worked once";
  EXPECT_TRUE(ruled_out([](auto&) { return false; }).empty()) << "nothing worked at all";
}

// A sample of many combinations: what chance puts into each of fifty values is not taken for an effect.
TEST(Importance, OfAnIdleParameterWithManyValuesIsNone) {
  std::vector<Value> fifty;
  for (int i = 0; i < 50; ++i) fifty.push_back(i);
  std::vector<Value> eight{1, 2, 3, 4, 5, 6, 7, 8};
  const SearchSpace space = SearchSpace::build(
      {parameter("a", eight), parameter("idle", fifty), parameter("b", eight), parameter("c", eight)}, {});
  std::vector<Judged> results;
  Random random(12);
  for (const ConfigurationIndex index : space.sample_distinct(150, random)) {
    const Configuration c = space.configuration(index);
    results.push_back({c, std::exp(0.2 * c[0].as_real() + 0.2 * c[2].as_real() + 0.3 * c[3].as_real())});
  }
  const Importance importance = importance_of(space.parameters(), results);
  EXPECT_EQ(share_of(importance, {1}), 0);
  EXPECT_NEAR(share_of(importance, {0}), 0.04 / 0.17, 0.04);
  EXPECT_NEAR(share_of(importance, {2}), 0.04 / 0.17, 0.04);
  EXPECT_NEAR(share_of(importance, {3}), 0.09 / 0.17, 0.04);
}

// The interval of one set of results is as wide as the shares of many sets scatter.
TEST(Importance, HasIntervalsAsWideAsItsSharesScatter) {
  const SearchSpace space =
      SearchSpace::build({parameter("a", {1, 2, 3, 4, 5, 6}), parameter("b", {1, 2, 3, 4, 5})}, {});
  Random random(31);
  RunningStatistics shares, widths;
  for (int set = 0; set < 24; ++set) {
    const Importance importance =
        importance_of(space.parameters(), judged(space, [&](auto& c) {
                        return std::exp(0.3 * c[0].as_real() + 0.3 * c[1].as_real() + 0.3 * random.normal());
                      }));
    for (const auto& one : importance.shares) {
      if (one.parameters != std::vector<std::size_t>{0}) continue;
      shares.add(one.share);
      widths.add((one.high - one.low) / 2);
    }
  }
  ASSERT_EQ(shares.count(), 24u);
  const double ratio = widths.mean() / (1.96 * std::sqrt(shares.variance()));
  EXPECT_GT(ratio, 0.5);
  EXPECT_LT(ratio, 2.5);
}

}  // namespace
}  // namespace ergotune
