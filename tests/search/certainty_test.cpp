// How sure a winner is, against what normal distributions say on paper.
#include "ergotune/search/certainty.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ergotune {
namespace {

Outcome confirmed(double value, double error) {
  Outcome outcome;
  outcome.ok = true;
  outcome.values = {value};
  if (error >= 0) outcome.standard_errors = {error};
  return outcome;
}

TEST(Certainty, OfEqualsIsAnEqualShare) {
  EXPECT_NEAR(probability_of_being_best({5, 5}, {1, 1})[1], 0.5, 0.02);
  const auto of_three = probability_of_being_best({5, 5, 5}, {0.1, 0.1, 0.1});
  ASSERT_EQ(of_three.size(), 3u);
  double sum = 0;
  for (const double share : of_three) {
    EXPECT_NEAR(share, 1.0 / 3, 0.02);
    sum += share;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_TRUE(probability_of_being_best({}, {}).empty());
}

// a is below b with probability Phi((b - a) / sqrt(ea^2 + eb^2)); the loss is E[max(0, a - b)] = s phi(z) -
// (b - a) Phi(-z).
TEST(Certainty, FollowsFromDistanceAndErrors) {
  const double s = std::hypot(0.3, 0.4), z = 0.5 / s;
  const double below = 0.5 * std::erfc(-z / std::sqrt(2.0)),
               density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  EXPECT_NEAR(probability_of_being_best({4, 4.5}, {0.3, 0.4})[0], below, 0.01);
  EXPECT_NEAR(expected_loss({4, 4.5}, {0.3, 0.4}), (s * density - 0.5 * (1 - below)) / 4, 0.001);
  EXPECT_NEAR(expected_loss({-4, -3.5}, {0.3, 0.4}), (s * density - 0.5 * (1 - below)) / 4, 0.001)
      << "relative to its size";
  EXPECT_NEAR(expected_loss({5, 5}, {1, 1}), 1 / std::sqrt(M_PI) / 5, 0.003);
  EXPECT_EQ(expected_loss({5, 6}, {0, 0}), 0);
  EXPECT_EQ(expected_loss({6, 5}, {0, 0}), 1.0 / 6);
  EXPECT_EQ(expected_loss({5}, {1}), 0);
  EXPECT_EQ(expected_loss({}, {}), 0);
  EXPECT_EQ(expected_loss({0, 1}, {1, 1}), 0) << "nothing to be relative to";
}

TEST(Certainty, CountsWhatWorkedAndTakesWhatHasNoErrorAsExact) {
  EXPECT_FALSE(certainty_of({}));
  EXPECT_FALSE(certainty_of({Outcome{}}));
  Outcome empty;
  empty.ok = true;
  EXPECT_FALSE(certainty_of({empty}));
  Outcome failed = confirmed(1, 5);
  failed.ok = false;
  const Certainty sure = certainty_of({failed, empty, confirmed(5, -1), confirmed(6, -1)}).value();
  EXPECT_NEAR(sure.probability_best, 1, 1e-9);
  EXPECT_EQ(sure.expected_loss, 0);
  const Certainty unsure = certainty_of({confirmed(5, 1), confirmed(5, 1)}).value();
  EXPECT_NEAR(unsure.probability_best, 0.5, 0.02);
  EXPECT_NEAR(unsure.expected_loss, 1 / std::sqrt(M_PI) / 5, 0.003);
}

}  // namespace
}  // namespace ergotune
