// How sure a winner is, from the rounds of its confirmation.
#include "search/certainty.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

/// `rounds` rounds of candidates with these values, with noise of `noise` and a drift from round to round, as shares.
std::vector<std::vector<RoundValue>> rounds_of(const std::vector<double>& truth, int rounds, double noise,
                                               double drift = 0, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<std::vector<RoundValue>> candidates(truth.size());
  for (int r = 0; r < rounds; ++r) {
    const double common = drift * random.normal();
    for (std::size_t i = 0; i < truth.size(); ++i)
      candidates[i].push_back({r, truth[i] * (1 + noise * random.normal() + common), 0});
  }
  return candidates;
}

TEST(Certainty, NeedsARival) {
  EXPECT_FALSE(choice_probabilities({}));
  EXPECT_FALSE(choice_probabilities(rounds_of({1}, 3, 0.01))) << "the best of one";
  EXPECT_TRUE(choice_probabilities(rounds_of({1, 2}, 3, 0.01)));
}

TEST(Certainty, IsAShareOfOneAmongTheCandidates) {
  const ChoiceProbabilities chances = choice_probabilities(rounds_of({1, 1, 1.05}, 6, 0.02)).value();
  ASSERT_EQ(chances.of.size(), 3u);
  EXPECT_NEAR(chances.of[0] + chances.of[1] + chances.of[2], 1, 1e-9);
  EXPECT_EQ(chances.probability_best, chances.of[0]);
  EXPECT_GE(chances.expected_loss, 0);
}

TEST(Certainty, EqualsShareTheChance) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    sum += choice_probabilities(rounds_of({5, 5}, 6, 0.02, 0, seed))->probability_best / 30;
  EXPECT_NEAR(sum, 0.5, 0.1);
}

TEST(Certainty, FarApartIsSure) {
  for (const double sign : {1.0, -1.0}) {
    const std::vector<double> best_first = sign > 0 ? std::vector<double>{1, 2, 3} : std::vector<double>{-3, -2, -1};
    const ChoiceProbabilities chances = choice_probabilities(rounds_of(best_first, 3, 0.01)).value();
    EXPECT_GT(chances.probability_best, 0.99) << sign;
    EXPECT_LT(chances.expected_loss, 0.003) << sign;
  }
  const ChoiceProbabilities wrong = choice_probabilities(rounds_of({2, 1, 3}, 3, 0.001)).value();
  EXPECT_LT(wrong.probability_best, 0.01) << "the first is whom the caller chose";
  EXPECT_NEAR(wrong.expected_loss, 0.5, 0.02);
}

// The load of a round and the device's factor are shared: they make no difference of its candidates uncertain.
TEST(Certainty, WhatARoundSharesIsNoNoise) {
  const ChoiceProbabilities drifting = choice_probabilities(rounds_of({1, 1.05, 1.06}, 6, 0.005, 0.3)).value();
  EXPECT_GT(drifting.probability_best, 0.97);
  EXPECT_LT(drifting.expected_loss, 0.003);
}

// Candidates of different rounds compare over those that were in both.
TEST(Certainty, RoundsOfDifferentLoadCompareOverTheirCommonCandidate) {
  std::vector<std::vector<RoundValue>> candidates(3);
  Random random(3);
  const auto noise = [&] { return 1 + 0.003 * random.normal(); };
  for (int r = 0; r < 6; ++r) {
    const double load = r < 3 ? 1 : 1.5;
    candidates[1].push_back({r, 1.1 * load * noise(), 0});
    candidates[r < 3 ? 2 : 0].push_back({r, (r < 3 ? 1.2 : 1.0) * load * noise(), 0});
  }
  EXPECT_GT(choice_probabilities(candidates)->probability_best, 0.95)
      << "1.5 under a load of 1.5 is less than 1.2 without";
}

TEST(Certainty, IsNoSurerThanTheRoundsAreOfThemselves) {
  std::vector<std::vector<RoundValue>> same(2);
  for (int r = 0; r < 3; ++r) same[0].push_back({r, 1, 0.05}), same[1].push_back({r, 1.02, 0.05});
  EXPECT_LT(choice_probabilities(same)->probability_best, 0.9) << "three equal readings by luck";
}

TEST(Certainty, FewRoundsSayLittleOfTheirNoise) {
  double few = 0, many = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    few += choice_probabilities(rounds_of({1, 1.04}, 3, 0.02, 0, seed))->probability_best / 20;
    many += choice_probabilities(rounds_of({1, 1.04}, 15, 0.02, 0, seed))->probability_best / 20;
  }
  EXPECT_LT(few, many);
  EXPECT_GT(many, 0.97);
}

}  // namespace
}  // namespace ergotune
