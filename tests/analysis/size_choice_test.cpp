#include "analysis/size_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergotune {
namespace {

/// Configuration 0 is best for small sizes, 2 for large ones, 1 is never far off.
SizedResults three() {
  SizedResults results;
  results.names = {"N"};
  for (const double n : {256, 512, 1024, 2048, 4096}) results.sizes.push_back({n});
  results.value = {{1.0, 2.0, 5.0, 12.0, 30.0}, {1.1, 2.2, 4.4, 8.8, 17.6}, {2.0, 3.0, 4.0, 8.0, 16.0}};
  return results;
}

TEST(SizeChoice, OneForAllDependsOnWhatCounts) {
  SizedResults results = three();
  const auto mean = best_over_sizes(results, false);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->configuration, 1u);
  EXPECT_NEAR(mean->mean, 0.1, 1e-9);
  results.value[1] = {1.0, 2.0, 4.0, 8.0, 20.0};  // seldom worse, then by more
  results.value[2] = {1.1, 2.2, 4.4, 8.8, 17.6};
  EXPECT_EQ(best_over_sizes(results, false)->configuration, 1u);
  EXPECT_EQ(best_over_sizes(results, true)->configuration, 2u);
}

TEST(SizeChoice, ATreeSplitsWhereTheBestChanges) {
  const auto tree = size_tree(three(), 6, false);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->leaves, 2u);
  EXPECT_NEAR(tree->mean, 0, 1e-9);
  EXPECT_EQ(tree->choose({300}), 0u);
  EXPECT_EQ(tree->choose({512}), 0u);
  EXPECT_EQ(tree->choose({1024}), 2u);
  EXPECT_EQ(tree->choose({1e6}), 2u);
  const auto stump = size_tree(three(), 1, false);
  EXPECT_EQ(stump->leaves, 1u);
  EXPECT_EQ(stump->choose({256}), 1u);
}

TEST(SizeChoice, ATreeLooksAtEachConstant) {
  SizedResults results;
  results.names = {"M", "N"};
  results.sizes = {{1, 10}, {1, 1000}, {50, 10}, {50, 1000}};
  results.value = {{1, 1, 3, 3}, {3, 3, 1, 2}, {4, 4, 4, 1}};
  const auto tree = size_tree(results, 6, false);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->leaves, 3u);
  EXPECT_EQ(tree->choose({1, 1000}), 0u);
  EXPECT_EQ(tree->choose({50, 10}), 1u);
  EXPECT_EQ(tree->choose({50, 1000}), 2u);
}

TEST(SizeChoice, WhatFailsAtASizeIsNotChosenThere) {
  SizedResults results = three();
  results.value[1][0].reset();
  results.value[2][1].reset();
  results.value[0][4].reset();
  EXPECT_FALSE(best_over_sizes(results, false));
  const auto tree = size_tree(results, 6, false);
  ASSERT_TRUE(tree);
  for (std::size_t s = 0; s < results.sizes.size(); ++s)
    EXPECT_TRUE(results.value[tree->choose(results.sizes[s])][s]) << s;
  for (auto& row : results.value) row[2].reset();
  EXPECT_FALSE(size_tree(results, 6, false)) << "a size without a result";
}

}  // namespace
}  // namespace ergotune
