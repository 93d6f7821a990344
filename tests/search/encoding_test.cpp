// What a model sees of a space's parameters.
#include "search/encoding.hpp"

#include <gtest/gtest.h>

#include "fixtures.hpp"

namespace ergotune::search {
namespace {

using namespace search_tests;
using Kind = Feature::Kind;
using Coordinates = std::vector<std::vector<float>>;

std::vector<Feature> features_of(std::vector<Parameter> parameters) {
  return make_features(SearchSpace::build(std::move(parameters), {}));
}

/// The only feature of a parameter with these values.
Feature only(std::vector<Value> values) {
  auto features = features_of({parameter("p", std::move(values))});
  EXPECT_EQ(features.size(), 1u);
  return features.at(0);
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << "at " << i;
}

TEST(Features, OfASizeGoFromZeroToOneByItsLogarithm) {
  EXPECT_EQ(only({1, 2, 4}).kind, Kind::ordinal);
  expect_near(only({1, 2, 4, 16}).coordinates.at(0), {0, 0.25f, 0.5f, 1});
  expect_near(only({0.25, 4.0, 1.0}).coordinates.at(0), {0, 1, 0.5f});
}

TEST(Features, OfNumbersAroundZeroGoByTheirDistanceFromTheLeast) {
  expect_near(only({0, 1, 3, 7}).coordinates.at(0), {0, 1.0f / 3, 2.0f / 3, 1});
  expect_near(only({-4, 3, -1, -3}).coordinates.at(0), {0, 1, 2.0f / 3, 1.0f / 3});
}

TEST(Features, OfTextsAreEqualOrNot) {
  const Feature texts = only({"rows", "columns", "tiles"});
  EXPECT_EQ(texts.kind, Kind::nominal);
  EXPECT_EQ(texts.coordinates, (Coordinates{{0, 1, 2}}));
  EXPECT_EQ(only({1, "two", 3}).kind, Kind::nominal);
}

TEST(Features, OfAParameterWithOneValueAreNone) {
  EXPECT_TRUE(features_of({parameter("p", {7}), parameter("q", {"x"})}).empty());
}

// Warps, vectors and banks care how often 2 divides a number; where all are powers of two their size says it.
TEST(Features, OfWholeNumbersSayHowOftenTwoDividesThem) {
  const auto two = features_of({parameter("p", {3, 6, 12, 24, 48})});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].kind, Kind::ordinal);
  EXPECT_EQ(two[1].kind, Kind::divisibility);
  expect_near(two[1].coordinates.at(0), {0, 0.25f, 0.5f, 0.75f, 1});
  const auto often = features_of({parameter("p", {5, 7, 10, 64, 128, 192})});
  ASSERT_EQ(often.size(), 2u);
  expect_near(often[1].coordinates.at(0), {0, 0, 1.0f / 6, 1, 1, 1});  // six times and more are alike
  const auto odd = features_of({parameter("p", {3, 5, 7, 9, 11})});
  ASSERT_EQ(odd.size(), 2u);
  expect_near(odd[1].coordinates.at(0), {0, 0, 0, 0, 0});
  only({3, 6, 12, 24});         // a handful says nothing
  only({1, 2, 4, 8, 16, 32});   // powers of two
  only({0, 3, 6, 12, 24, 48});  // 0 is divided for ever
  only({-6, 3, 6, 12, 24, 48});
  only({1.5, 3.0, 6.0, 7.0, 8.0});
}

TEST(Features, OfAShapeSayHowLargeItIs) {
  const auto features = features_of({parameter("block_size_x", {16, 32, 64}), parameter("unroll", {1, 2}),
                                     parameter("block_size_y", {1, 2, 4, 8})});
  ASSERT_EQ(features.size(), 4u);
  const Feature& product = features[3];
  EXPECT_EQ(product.kind, Kind::product);
  EXPECT_EQ(product.parameters, (std::vector<std::size_t>{0, 2}));
  ASSERT_EQ(product.coordinates.size(), 2u);
  // from 16 to 512 threads there are 5 doublings
  expect_near(product.coordinates[0], {4 / 5.0f, 5 / 5.0f, 6 / 5.0f});
  expect_near(product.coordinates[1], {0, 1 / 5.0f, 2 / 5.0f, 3 / 5.0f});
  const std::vector<std::uint32_t> positions{1, 0, 3};
  EXPECT_NEAR(product.at(positions.data()), 8 / 5.0f, 1e-6) << "256 threads";
  EXPECT_NEAR(features[1].at(positions.data()), 0, 1e-6);
  EXPECT_NEAR(features[2].at(positions.data()), 1, 1e-6);
}

TEST(Features, OfWhatIsNoShapeSayNothingTogether) {
  EXPECT_EQ(features_of({parameter("tile_x", {1, 2}), parameter("block_y", {1, 2})}).size(), 2u)
      << "of two things";
  EXPECT_EQ(features_of({parameter("x", {1, 2}), parameter("y", {1, 2})}).size(), 2u)
      << "a letter is no name of a thing";
  EXPECT_EQ(features_of({parameter("tile_x", {0, 2}), parameter("tile_y", {1, 2})}).size(), 2u)
      << "nothing is no size";
  EXPECT_EQ(features_of({parameter("tileX", {1, 2}), parameter("tileY", {1, 2}), parameter("tileZ", {1, 2})})
                .size(),
            4u);
}

}  // namespace
}  // namespace ergotune::search
