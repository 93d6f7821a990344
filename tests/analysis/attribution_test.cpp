// What is attributed to kernels: the axioms that Shapley values are known by, and errors that add up.
#include "analysis/apart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

using Method = AttributionMethod;
using Values = std::map<Coalition, Quantity>;

/// A game of so many players with values of any kind.
Values any_game(std::size_t players) {
  Values values;
  for (Coalition c = 1; c < Coalition{1} << players; ++c) {
    Quantity value;
    value.value = *rc::gen::inRange(-1000, 1000) / 8.0;
    value.standard_error = *rc::gen::inRange(0, 100) / 16.0;
    value.n = 5;
    values[c] = value;
  }
  return values;
}

double at(const Values& values, Coalition coalition) { return coalition == 0 ? 0 : values.at(coalition).value; }

TEST(Attribution, ShapleySharesAddUpToTheWhole) {
  EXPECT_TRUE(rc::check("efficiency", [] {
    const auto players = *rc::gen::inRange<std::size_t>(1, 5);
    const Values values = any_game(players);
    double sum = 0;
    for (const Quantity& share : attribute(Method::shapley, players, values)) sum += share.value;
    RC_ASSERT(std::abs(sum - at(values, (1u << players) - 1)) < 1e-9);
  }));
}

TEST(Attribution, WhoAddsTheSameHasTheSame) {
  EXPECT_TRUE(rc::check("symmetry", [] {
    const auto players = *rc::gen::inRange<std::size_t>(2, 5);
    Values values = any_game(players);
    for (auto& [coalition, value] : values)  // players 0 and 1 change places
      if ((coalition & 3) == 2) value = values.at((coalition & ~Coalition{3}) | 1);
    for (const auto method : {Method::shapley, Method::marginal}) {
      const auto shares = attribute(method, players, values);
      RC_ASSERT(std::abs(shares[0].value - shares[1].value) < 1e-9);
      RC_ASSERT(std::abs(shares[0].standard_error - shares[1].standard_error) < 1e-9);
    }
  }));
}

TEST(Attribution, ByHand) {
  // Two kernels of 3 J and 5 J alone that take 6 J together: the 2 J that are saved go to both alike.
  Values values;
  values[1] = {3, 0.3, 7, "", "", Provenance::measured};
  values[2] = {5, 0.4, 9, "", "", Provenance::measured};
  values[3] = {6, 1.2, 8, "", "", Provenance::measured};
  auto shares = attribute(Method::shapley, 2, values);
  EXPECT_DOUBLE_EQ(shares[0].value, 2);
  EXPECT_DOUBLE_EQ(shares[1].value, 4);
  EXPECT_DOUBLE_EQ(shares[0].standard_error, 0.5 * std::sqrt(0.09 + 0.16 + 1.44));
  EXPECT_EQ(shares[0].provenance, Provenance::modelled);
  EXPECT_EQ(shares[0].n, 7);
  shares = attribute(Method::marginal, 2, values);
  EXPECT_DOUBLE_EQ(shares[0].value, 1);
  EXPECT_DOUBLE_EQ(shares[1].value, 3);
  EXPECT_DOUBLE_EQ(shares[1].standard_error, std::sqrt(0.09 + 1.44));
}

TEST(Attribution, OnlyWhatIsNeededIsMeasured) {
  EXPECT_THAT(coalitions_for(Method::marginal, 3), testing::ElementsAre(7u, 6u, 5u, 3u));
  EXPECT_EQ(coalitions_for(Method::shapley, 4).size(), 15u);
  EXPECT_EQ(coalitions_for(Method::shapley, 4).front(), 15u);
  EXPECT_THAT(coalitions_for(Method::marginal, 1), testing::ElementsAre(1u));
  EXPECT_THROW(coalitions_for(Method::shapley, 5), UserError);
  EXPECT_EQ(coalitions_for(Method::marginal, 5).size(), 6u);
  EXPECT_THROW(attribute(Method::marginal, 2, {{3, {}}}), Error);
  EXPECT_THROW(attribution_method("shapely"), UserError);
}

}  // namespace
}  // namespace ergotune
