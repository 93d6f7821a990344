// One device whose conditions change while it measures: what was searched under another load is compared over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ergotune/random.hpp"
#include "tune/session/confirmation.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

/// One device in virtual time whose load multiplies all that it measures. The best configuration of all is the one that
/// is searched first after `best_at`.
class LoadedDevice : public QueuedEvaluator {
 public:
  double took = 0.5, noise = 0.01, best_at = 1e300;
  std::function<double(double)> load = [](double) { return 1.0; };
  double now = 0;
  std::optional<ConfigurationIndex> best;
  int baselines = 0;
  std::set<ConfigurationIndex> confirmed;

  explicit LoadedDevice(std::uint64_t seed) : random_(seed) {}
  std::string description() const override { return "virtual device"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return 4; }
  EvaluationResult answer(const EvaluationRequest& request) override {
    if (!best && now >= best_at && !truth_.contains(request.index)) {
      best = request.index;
      truth_[request.index] = 0.8e-3;
    }
    const auto [truth, fresh] = truth_.try_emplace(request.index, 0.0);
    if (fresh) truth->second = 1e-3 * (1 + 0.6 * random_.uniform());
    if (request.repeat && searching) ++baselines;
    if (request.repeat && !searching) confirmed.insert(request.index);
    const double time = truth->second * load(now + took / 2) * std::exp(noise * random_.normal());
    now += took;
    EvaluationResult result;
    result.measurement.quantities["time"] = {time, 0.3 * noise * time, 7, "virtual", "", Provenance::measured};
    result.measurement.measure_seconds = took;
    result.measurement.finished_at = 1e9 + now;
    return result;
  }
  bool searching = true;

 private:
  std::map<ConfigurationIndex, double> truth_;
  Random random_;
};

struct Drifting : ::testing::Test {
  SearchSpace space = [] {
    std::vector<Parameter> parameters(2);
    for (std::size_t p = 0; p < 2; ++p) {
      parameters[p].name = p == 0 ? "x" : "y";
      for (int i = 1; i <= 20; ++i) parameters[p].values.emplace_back(i);
    }
    return SearchSpace::build(parameters, {});
  }();

  SessionResult run(LoadedDevice& device, bool confirm = true) {
    SessionOptions options;
    options.confirm = confirm;
    options.strategy = "brute_force";
    options.progress = [&](const SessionProgress& progress) { device.searching = progress.phase.empty(); };
    Objective objective = Objective::parse({}, {});
    return run_session(space, objective, device, nullptr, 0, options);
  }
};

TEST_F(Drifting, ALoadThatHidesTheBestForAMinuteIsComparedOver) {
  int found = 0, sessions = 0;
  for (const double from : {0.0, 40.0, 90.0}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed, ++sessions) {
      LoadedDevice device(seed);
      device.load = [from](double t) { return t >= from && t < from + 60 ? 2.0 : 1.0; };
      device.best_at = from + 12 * static_cast<double>(seed);
      const SessionResult result = run(device);
      ASSERT_TRUE(device.best);
      found += result.best.front().index == *device.best && device.confirmed.contains(*device.best);
      ASSERT_TRUE(result.drift.contains("time"));
      EXPECT_NEAR(std::exp(result.drift.at("time").most - result.drift.at("time").least), 2, 0.15);
      EXPECT_EQ(result.evaluated, space.size());
    }
  }
  EXPECT_EQ(found, sessions);
}

TEST_F(Drifting, ASlowTrendIsComparedOver) {
  LoadedDevice device(3);
  device.load = [](double t) { return 1 + 0.4 * t / 200; };
  device.best_at = 195;  // reads 12 % above the best of those that were measured first
  const SessionResult result = run(device);
  EXPECT_EQ(result.best.front().index, *device.best);
}

TEST_F(Drifting, WhatOnlyScattersIsLeftAsItIs) {
  int drifts = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    LoadedDevice device(seed);
    device.noise = 0.05;
    drifts += !run(device, false).drift.empty();
  }
  EXPECT_LE(drifts, 3) << "at 1 %";
}

TEST_F(Drifting, BaselineRunsTakeAFewPercentAndAShortSessionHasNone) {
  LoadedDevice device(1);
  run(device, false);
  EXPECT_GE(device.baselines, 10);
  EXPECT_LE(device.baselines, 0.055 * static_cast<double>(space.size()) + 2);
  LoadedDevice quick(1);
  quick.took = 0.02;
  run(quick, false);
  EXPECT_EQ(quick.baselines, 0);
}

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
