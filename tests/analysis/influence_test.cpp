#include "analysis/influence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

using Columns = std::vector<std::pair<std::string, std::vector<double>>>;

Recording recording_of(const Columns& columns) {
  Recording r;
  r.name = "kernel";
  r.device = "a board";
  Parameter tile;
  tile.name = "tile";
  const std::size_t rows = columns.front().second.size();
  for (std::size_t i = 0; i < rows; ++i) {
    tile.values.push_back(Value(static_cast<int>(i % 4)));
    r.positions.push_back(static_cast<std::uint32_t>(i % 4));
    r.statuses.push_back(Status::ok);
  }
  tile.values.resize(4);
  r.parameters = {tile};
  for (const auto& [name, values] : columns) r.columns.push_back({name, values, {}, {}, false});
  return r;
}

/// Standard normal numbers, from twelve even ones (Irwin and Hall).
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.below(1'000'000)) / 1e6;
  return sum;
}

const Influence& named(const std::vector<Influence>& list, const std::string& name) {
  return *std::ranges::find_if(list, [&](const Influence& one) { return one.name == name; });
}

/// Speed varies a little; columns are made from its deviation `s` and that of efficiency `e`, both standard normal.
template <class F>
Recording correlated(std::uint64_t seed, std::size_t rows, F&& more) {
  Random random(seed);
  Columns columns{{"time", {}}, {"energy", {}}};
  for (std::size_t i = 0; i < rows; ++i) {
    const double s = normal(random), e = normal(random);
    columns[0].second.push_back(1 / (1 + 0.01 * s));
    columns[1].second.push_back(1 / (1 + 0.01 * e));
    const auto values = more(random, s, e);
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (columns.size() <= k + 2) columns.emplace_back("c" + std::to_string(k), std::vector<double>());
      columns[k + 2].second.push_back(values[k]);
    }
  }
  return recording_of(columns);
}

TEST(Influence, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  int held = 0;
  constexpr int kTries = 60;
  for (std::uint64_t seed = 1; seed <= kTries; ++seed) {
    const Recording recording = correlated(seed, 100, [](Random& random, double s, double) {
      return std::vector<double>{0.6 * s + 0.8 * normal(random)};  // correlation 0.6
    });
    const auto list = influences(recording, analyse_tradeoff(recording), {300, seed});
    const Association& a = named(list, "c0").speed;
    held += a.low <= 0.6 && 0.6 <= a.high;
    EXPECT_LT(a.p, 0.05);
  }
  EXPECT_GE(held, 51) << "of 60; 57 are expected";
}

TEST(Influence, OfManyThatMeanNothingNoneIsCalledSignificant) {
  int runs_with_any = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Recording recording = correlated(100 + seed, 60, [](Random& random, double, double) {
      std::vector<double> noise(30);
      for (double& x : noise) x = normal(random);
      return noise;
    });
    const auto list = influences(recording, analyse_tradeoff(recording), {100, seed});
    EXPECT_EQ(list.size(), 31u);
    runs_with_any += std::ranges::any_of(list, [](const Influence& one) {
      return std::min({one.speed.p, one.efficiency.p, one.product.p}) < 0.05;
    });
  }
  EXPECT_LE(runs_with_any, 3) << "one in twenty is expected; uncorrected it would be nearly all";
}

TEST(Influence, WhatGoesWithSpeedButAgainstEfficiencyMoves) {
  const Recording recording = correlated(7, 200, [](Random& random, double s, double e) {
    return std::vector<double>{s - e + 0.3 * normal(random), s + e + 0.3 * normal(random), normal(random)};
  });
  const auto list = influences(recording, analyse_tradeoff(recording));
  EXPECT_TRUE(named(list, "c0").moves);
  EXPECT_LT(named(list, "c0").shift.high, -1);
  EXPECT_FALSE(named(list, "c1").moves);
  EXPECT_GT(named(list, "c1").product.r, 0.9);
  EXPECT_FALSE(named(list, "c2").moves);
  EXPECT_TRUE(std::ranges::is_sorted(list, [](const auto& a, const auto& b) { return a.speed.r < b.speed.r; }));
  EXPECT_THAT(explain(recording, analyse_tradeoff(recording), list, std::nullopt),
              Contains(HasSubstr("Between the two move: c0")));
}

TEST(Influence, TimesThatLessIsBetterOfFollowFromTime) {
  Recording recording = correlated(3, 40, [](Random& random, double s, double) {
    return std::vector<double>{-s, normal(random)};
  });
  recording.columns[2].name = "cpu_time";
  const auto list = influences(recording, analyse_tradeoff(recording));
  EXPECT_TRUE(std::ranges::none_of(list, [](const Influence& one) { return one.name == "cpu_time"; }));
}

TEST(Influence, WhereACounterIsMissingTheOthersCount) {
  Recording recording = correlated(3, 40, [](Random&, double s, double) { return std::vector<double>{s}; });
  for (std::size_t i = 0; i < 10; ++i) recording.columns[2].value[i] = std::numeric_limits<double>::quiet_NaN();
  const auto list = influences(recording, analyse_tradeoff(recording));
  EXPECT_EQ(named(list, "c0").count, 30u);
  EXPECT_THAT(named(list, "c0").speed.r, DoubleNear(1, 1e-3));
}

TEST(Holm, CorrectsStepByStep) {
  EXPECT_THAT(
      holm_adjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005}),
      ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.02, 1e-12)));
}

TEST(WeightedSweep, NamesTheBestForEveryWeight) {
  EXPECT_TRUE(
      rc::check("as looking at all of them does", [](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& raw) {
        RC_PRE(!raw.empty());
        Columns columns{{"time", {}}, {"energy", {}}};
        for (const auto& [t, e] : raw) {
          columns[0].second.push_back(1.0 + t);
          columns[1].second.push_back(1.0 + e);
        }
        const Recording recording = recording_of(columns);
        const Tradeoff tradeoff = analyse_tradeoff(recording);
        const auto sweep = weighted_sweep(tradeoff);
        const double t0 = *std::ranges::min_element(columns[0].second);
        const double e0 = *std::ranges::min_element(columns[1].second);
        RC_ASSERT(sweep.front().from == 0.0);
        RC_ASSERT(sweep.back().to == 1.0);
        for (std::size_t k = 0; k < sweep.size(); ++k) {
          if (k > 0) RC_ASSERT(sweep[k].from == sweep[k - 1].to);
          for (const double a : {sweep[k].from, 0.5 * (sweep[k].from + sweep[k].to), sweep[k].to}) {
            const auto m = [&](std::size_t i) {
              return a * tradeoff.points[i].time / t0 + (1 - a) * tradeoff.points[i].energy / e0;
            };
            for (std::size_t i = 0; i < tradeoff.points.size(); ++i) RC_ASSERT(m(sweep[k].point) <= m(i) + 1e-9);
          }
        }
      }));
}

TEST(Levels, AreMeansOverEqualOccupancy) {
  const Recording recording =
      recording_of({{"time", {1, 0.5, 1, 1}}, {"energy", {1, 1, 2, 4}}, {"occupancy", {0.25, 0.25, 0.5, 0.5}}});
  const auto levels = levels_of(recording, analyse_tradeoff(recording), "occupancy");
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].value, 0.25);
  EXPECT_EQ(levels[0].count, 2u);
  EXPECT_EQ(levels[0].speed, 1.5);
  EXPECT_EQ(levels[1].efficiency, 0.375);
}

TEST(Roofline, ComparesWithPeaksThatWereMeasuredElsewhere) {
  const Recording kernel = recording_of({{"time", {1, 2}},
                                         {"energy", {100, 100}},
                                         {"flop_count_sp", {8e12, 8e12}},
                                         {"dram_read_bytes", {0.5e12, 3e12}},
                                         {"dram_write_bytes", {0.5e12, 1e12}}});
  const Recording copy =
      recording_of({{"time", {1}}, {"energy", {200}}, {"dram_read_bytes", {1e12}}, {"dram_write_bytes", {1e12}}});
  const Recording fma = recording_of({{"time", {1}}, {"energy", {400}}, {"flop_count_sp", {20e12}}});
  const std::vector<Recording> peaks{copy, fma};
  const auto roofline = roofline_of(kernel, analyse_tradeoff(kernel), peaks);
  ASSERT_TRUE(roofline);
  EXPECT_EQ(roofline->peak_rate, 20e12);
  EXPECT_EQ(roofline->peak_bandwidth, 2e12);
  EXPECT_EQ(roofline->peak_per_joule, 8e10) << "the kernel itself is more efficient than the chains";
  EXPECT_EQ(roofline->points[0].intensity, 8);
  EXPECT_EQ(roofline->roof(8), 16e12);
  EXPECT_EQ(roofline->roof(100), 20e12);
  const auto words = explain(kernel, analyse_tradeoff(kernel), {}, roofline);
  EXPECT_THAT(words.front(),
              HasSubstr("8 operations per byte of device memory; the two roofs meet at 10, so memory bounds it"));
  const Recording bare = recording_of({{"time", {1, 2}}, {"energy", {1, 1}}});
  EXPECT_FALSE(roofline_of(bare, analyse_tradeoff(bare)));
}

}  // namespace
}  // namespace ergotune
