#include "tune/session/confirmation.hpp"

#include <gtest/gtest.h>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

TEST(RoundEffects, AreNoneWhereAllWereInAllRounds) {
  EXPECT_EQ(repeat_bias_factors({{{0, 1, 0}, {1, 7, 0}}, {{0, 2, 0}, {1, 3, 0}}}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(repeat_bias_factors({}).empty());
}

TEST(RoundEffects, OfADoubledLoadAreFoundOverWhoWasInBoth) {
  Random random(5);
  std::vector<std::vector<RoundValue>> values(4);
  const double truth[] = {1, 1.1, 1.2, 0.9};
  for (int r = 0; r < 6; ++r) {
    const double load = r < 3 ? 1 : 2;
    for (const std::size_t i : {0, 1, r < 3 ? 2 : 3})
      values[i].push_back({r, truth[i] * load * (1 + 0.002 * random.normal()), 0});
  }
  const std::vector<double> factors = repeat_bias_factors(values);
  EXPECT_NEAR(factors[0], factors[1], 0.01) << "in all rounds";
  EXPECT_NEAR(factors[3] / factors[2], 2, 0.05);
}

TEST(RoundEffects, NoiseIsNotTakenForDrift) {
  Random random(6);
  std::vector<std::vector<RoundValue>> values(4);
  for (int r = 0; r < 6; ++r)
    for (const std::size_t i : {0, 1, r < 3 ? 2 : 3}) values[i].push_back({r, 1 + 0.1 * random.normal(), 0});
  for (const double factor : repeat_bias_factors(values)) EXPECT_NEAR(factor, 1, 0.1);
}

}  // namespace
}  // namespace ergotune
