#include "ergotune/search/importance.hpp"

#include <gtest/gtest.h>

#include "fixtures.hpp"

namespace ergotune {
namespace {

using namespace search_tests;

TEST(Importance, TellsWhatMattersWhatActsTogetherAndWhatNeverWorked) {
  std::vector<Value> six{1, 2, 3, 4, 5, 6};
  const SearchSpace space = SearchSpace::build(
      {parameter("main", six), parameter("left", {-1, 1}), parameter("right", {-1, 1}), parameter("idle", six)}, {});
  std::vector<std::pair<ConfigurationIndex, Outcome>> outcomes;
  Random random(5);
  for (const ConfigurationIndex index : space.sample_distinct(120, random)) {
    const Configuration c = space.configuration(index);
    Outcome outcome;
    outcome.ok = c[3] != Value(6);
    if (outcome.ok) outcome.values = {std::exp(0.2 * c[0].as_real() + 0.3 * c[1].as_real() * c[2].as_real())};
    outcomes.emplace_back(index, outcome);
  }
  const Importance importance = importance_of(space, outcomes);
  ASSERT_GE(importance.shares.size(), 2u);
  const auto share = [&](const std::vector<std::size_t>& of) {
    for (const auto& one : importance.shares)
      if (one.parameters == of) return one.share;
    return 0.0;
  };
  // variances of the truth: 0.2^2 * 35 / 12 and 0.3^2, i.e. 0.56 and 0.44 of it
  EXPECT_NEAR(share({0}), 0.56, 0.15);
  EXPECT_NEAR(share({1, 2}), 0.44, 0.15);
  EXPECT_LT(share({3}), 0.05);
  EXPECT_LT(share({1}) + share({2}), 0.15);
  ASSERT_EQ(importance.ruled_out.size(), 1u);
  EXPECT_EQ(importance.ruled_out[0].parameter, 3u);
  EXPECT_EQ(importance.ruled_out[0].value, 5u);
  EXPECT_TRUE(importance_of(space, {outcomes.begin(), outcomes.begin() + 10}).shares.empty());
}

}  // namespace
}  // namespace ergotune
