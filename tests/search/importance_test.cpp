#include "ergotune/search/importance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  for (const auto& [of, truth] : std::vector<std::pair<std::vector<std::size_t>, double>>{{{0}, 0.564}, {{1, 2}, 0.435}}) {
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

}  // namespace
}  // namespace ergotune
