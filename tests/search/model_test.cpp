// The models behind the Bayesian strategies.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/heuristics/moves.hpp"
#include "search/inactive_parameters.hpp"
#include "search/models/acquisition.hpp"
#include "search/models/feasibility.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune::search {
namespace {

using namespace search_tests;

std::vector<ConfigurationIndex> everything(const SearchSpace& space) {
  std::vector<ConfigurationIndex> all(space.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

double prediction_error(bool pool_first) {
  const SearchSpace space = restricted_space();
  GaussianProcess model(space);
  if (pool_first) model.set_pool(everything(space));
  Random random(5);
  std::vector<double> values;
  for (const ConfigurationIndex index : space.sample_distinct(60, random)) {
    model.observe(index);
    values.push_back(std::log(landscape(space, index)));
  }
  model.set_values(values);
  model.fit();
  if (pool_first)
    model.refit_pool();
  else
    model.set_pool(everything(space));
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  double squares = 0;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    const double error = mean[i] - std::log(landscape(space, i));
    squares += error * error;
  }
  return std::sqrt(squares / static_cast<double>(space.size()));
}

TEST(GaussianProcess, LearnsAnInteractingLandscapeFromATenthOfIt) { EXPECT_LT(prediction_error(true), 0.15); }

// Four thousand values lie too close for a level each; the last of them lay behind the table, and the session crashed.
TEST(GaussianProcess, AParameterOfThousandsOfValuesHasALevelForEach) {
  const SearchSpace space = line_space(4000);
  GaussianProcess model(space);
  const ConfigurationIndex last = space.size() - 1;
  model.set_pool({0, last});
  for (const ConfigurationIndex index : {ConfigurationIndex{0}, ConfigurationIndex{2000}, last}) model.observe(index);
  model.set_values(std::vector<double>{0.0, 0.5, 1.0});
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  EXPECT_NEAR(mean[0], 0, 0.15);
  EXPECT_NEAR(mean[1], 1, 0.15);
  EXPECT_LT(deviation[1], 0.2);
}

TEST(GaussianProcess, ExtendingThePosteriorEqualsBuildingIt) {
  const SearchSpace space = restricted_space();
  GaussianProcess extended(space), built(space);
  std::vector<ConfigurationIndex> pool = everything(space);
  while (pool.size() < 1200) pool.push_back(pool[pool.size() % space.size()]);  // more than is worked on at a time
  extended.set_pool(pool);
  Random random(5);
  std::vector<double> values;
  std::vector<float> mean[2], deviation[2];
  for (const ConfigurationIndex index : space.sample_distinct(40, random)) {
    extended.observe(index);
    built.observe(index);
    values.push_back(std::log(landscape(space, index)));
    extended.set_values(values);
    if (values.size() % 7 != 3) extended.predict(mean[0], deviation[0]);
  }
  built.set_pool(pool);
  built.set_values(values);
  built.predict(mean[1], deviation[1]);
  for (std::size_t i = 0; i < mean[0].size(); ++i) {
    EXPECT_NEAR(mean[0][i], mean[1][i], 1e-3);
    EXPECT_NEAR(deviation[0][i], deviation[1][i], 1e-3);
    EXPECT_NEAR(mean[0][i], mean[0][i % space.size()], 1e-5);
    EXPECT_NEAR(deviation[0][i], deviation[0][i % space.size()], 1e-5);
  }
}

TEST(GaussianProcess, ForgettingIsAsIfItHadNeverBeenObserved) {
  const SearchSpace space = restricted_space();
  GaussianProcess model(space), shorter(space);
  const std::vector<ConfigurationIndex> pool = everything(space);
  model.set_pool(pool);
  shorter.set_pool(pool);
  Random random(6);
  const auto sample = space.sample_distinct(30, random);
  std::vector<double> values;
  std::vector<float> mean[2], deviation[2];
  for (std::size_t i = 0; i < sample.size(); ++i) {
    model.observe(sample[i]);
    values.push_back(std::log(landscape(space, sample[i])));
    model.set_values(values);
    if (i % 3 == 0) model.predict(mean[0], deviation[0]);
    if (i < 20) shorter.observe(sample[i]);
  }
  model.keep_first(19);
  model.observe(sample[19]);
  values.resize(20);
  model.set_values(values);
  shorter.set_values(values);
  model.predict(mean[0], deviation[0]);
  shorter.predict(mean[1], deviation[1]);
  for (std::size_t i = 0; i < pool.size(); ++i) {
    EXPECT_NEAR(mean[0][i], mean[1][i], 1e-3);
    EXPECT_NEAR(deviation[0][i], deviation[1][i], 1e-3);
  }
}

TEST(Feasibility, LearnsWhichConfigurationsFail) {
  const SearchSpace space = restricted_space();
  const std::vector<ConfigurationIndex> pool = everything(space);
  std::vector<std::uint32_t> at(space.dimensions());
  const auto works = [&](ConfigurationIndex index) {
    space.values_at(index, at);
    return 2 * at[0] < space.parameters()[0].values.size();
  };
  Feasibility feasibility(space);
  feasibility.set_pool(pool);
  std::vector<float> log_probability;
  feasibility.predict(log_probability);
  EXPECT_EQ(log_probability, std::vector<float>(pool.size(), 0.0f)) << "before anything has failed";
  Random random(7);
  for (const ConfigurationIndex index : space.sample_distinct(40, random)) feasibility.observe(index, works(index), 0);
  feasibility.predict(log_probability);
  std::size_t right = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) right += works(pool[i]) == (log_probability[i] > std::log(0.5));
  EXPECT_GT(static_cast<double>(right), 0.9 * static_cast<double>(pool.size()));
}

TEST(Feasibility, FollowsWhatABlockNeedsWhereThatIsKnown) {
  const SearchSpace space = restricted_space();
  const std::vector<ConfigurationIndex> pool = everything(space);
  std::vector<std::uint32_t> at(space.dimensions());
  const auto need = [&](ConfigurationIndex index) {
    space.values_at(index, at);
    return 3.0 * (at[0] + 1) * (at[1] + 1) /
           static_cast<double>(space.parameters()[0].values.size() * space.parameters()[1].values.size());
  };
  const auto right_of = [&](bool is_known) {
    Feasibility feasibility(space);
    feasibility.set_pool(pool);
    Random random(7);
    for (const ConfigurationIndex index : space.sample_distinct(15, random))
      feasibility.observe(index, need(index) <= 1, is_known ? need(index) : 0);
    std::vector<float> log_probability;
    feasibility.predict(log_probability);
    std::size_t right = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) right += (need(pool[i]) <= 1) == (log_probability[i] > std::log(0.5));
    return static_cast<double>(right) / static_cast<double>(pool.size());
  };
  EXPECT_GT(right_of(true), 0.95);
  EXPECT_GT(right_of(true), right_of(false));
}

// A device that grants blocks more than it reports must not lose its best configurations.
TEST(Feasibility, LearnsThatBlocksMayHaveMoreThanTheDeviceReports) {
  const SearchSpace space = restricted_space();
  const std::vector<ConfigurationIndex> pool = everything(space);
  Feasibility feasibility(space);
  feasibility.set_pool(pool);
  Random random(7);
  for (const ConfigurationIndex index : space.sample_distinct(15, random)) feasibility.observe(index, true, 4.0);
  std::vector<float> log_probability;
  feasibility.predict(log_probability);
  EXPECT_GT(*std::ranges::min_element(log_probability), std::log(0.3));
}

// The search leaves out what a bound calls hopeless: it must never be one that was looked for.
TEST(Acquisition, NothingBelowTheBoundImprovesAsMuchAsWanted) {
  Random random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const double largest = std::exp(random.uniform() * 10 - 8), deviation = largest * (1e-3 + 0.999 * random.uniform());
    const double gain = deviation * (random.uniform() * 60 - 55);
    const double improvement = log_expected_improvement(gain, deviation);
    EXPECT_GE(gain, least_deviations(improvement, largest) * deviation) << gain << " " << deviation << " " << largest;
    EXPECT_LT(log_expected_improvement(least_deviations(improvement, deviation) * deviation, deviation), improvement);
    EXPECT_NEAR(least_deviations(improvement, deviation), gain / deviation, 1e-4 * (1 + std::abs(gain / deviation)));
  }
}

TEST(Acquisition, ExpectedImprovement) {
  EXPECT_NEAR(expected_improvement(0, 1), 0.3989422804, 1e-9);
  EXPECT_NEAR(expected_improvement(3, 1e-9), 3, 1e-6);
  EXPECT_EQ(expected_improvement(-1, 0), 0);
  EXPECT_LT(expected_improvement(-2, 1), expected_improvement(-1, 1));
}

// log(phi(z) - z Phi(-z)), worked out with fifty digits.
TEST(Acquisition, ItsLogarithmFarOutIsTheTruth) {
  EXPECT_NEAR(log_expected_improvement(-6, 1), -22.578879, 0.012);
  EXPECT_NEAR(log_expected_improvement(-10, 1), -55.553122, 0.0016);
  EXPECT_NEAR(log_expected_improvement(-20, 1), -206.917839, 1e-4);
  EXPECT_NEAR(log_expected_improvement(-20 * 3, 3), -206.917839 + std::log(3.0), 1e-4);
  EXPECT_GT(expected_improvement(-7.9, 1), 0);
  EXPECT_EQ(expected_improvement(-8.1, 1), 0);
}

TEST(InactiveParameters, AParameterIsIdleUntilItIsSeenToMatter) {
  const SearchSpace space = SearchSpace::build({parameter("a", {1, 2, 3}), parameter("b", {1, 2, 3})}, {});
  const auto at = [&](int a, int b) { return space.index_of(Configuration{a, b}).value(); };
  InactiveParameters twins(space);
  twins.observe(at(1, 1), true, 2.0);
  EXPECT_FALSE(twins.twin(at(1, 2)));
  twins.observe(at(1, 2), true, 2.0);
  EXPECT_TRUE(twins.idle(1));
  EXPECT_FALSE(twins.idle(0));
  EXPECT_TRUE(twins.twin(at(1, 3)));
  EXPECT_FALSE(twins.twin(at(2, 3)));
  twins.observe(at(1, 3), true, 2.1);
  EXPECT_FALSE(twins.idle(1));
  EXPECT_FALSE(twins.twin(at(2, 1)));
}

TEST(InactiveParameters, FailuresAreNoSignThatAParameterIsIdle) {
  const SearchSpace space = line_space(4);
  InactiveParameters twins(space);
  twins.observe(0, false, 0);
  twins.observe(1, false, 0);
  EXPECT_FALSE(twins.idle(0));
  twins.observe(2, true, 1);
  twins.observe(3, true, 1);
  EXPECT_FALSE(twins.idle(0)) << "it decides what fails";
}

TEST(Moves, StayInTheSpace) {
  const SearchSpace space = restricted_space();
  Moves moves(space);
  Random random(1);
  std::vector<ConfigurationIndex> neighbours;
  for (int i = 0; i < 300; ++i) {
    const ConfigurationIndex from = space.sample(random);
    const ConfigurationIndex next = moves.random_neighbour(from, random);
    space.neighbours(from, Neighbourhood::hamming, neighbours);
    EXPECT_TRUE(next == from || std::count(neighbours.begin(), neighbours.end(), next) == 1);
    std::vector<double> point;
    for (std::size_t p = 0; p < space.dimensions(); ++p) point.push_back(40 * random.normal());
    EXPECT_LT(moves.towards(from, point, random), space.size());
  }
}

}  // namespace
}  // namespace ergotune::search
