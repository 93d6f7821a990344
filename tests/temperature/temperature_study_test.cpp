#include "temperature/temperature.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

/// Runs of a GPU that heats up and rests: 60 W + 0.5 W per degree, 10 ms, with scatter that lasts (`correlation`).
std::vector<Measurement> runs_of_a_gpu(Random& random, std::size_t count, double relative, double correlation = 0) {
  std::vector<Measurement> runs;
  double scatter = random.normal();
  for (std::size_t i = 0; i < count; ++i) {
    const double celsius = 60 - 25 * std::exp(-static_cast<double>(i % 50) / 12);
    scatter = correlation * scatter + std::sqrt(1 - correlation * correlation) * random.normal();
    const double power = (60 + 0.5 * (celsius - 40)) * (1 + relative * scatter);
    Measurement run;
    run.quantities["temperature"].value = celsius;
    run.quantities["power"].value = power;
    run.quantities["time"].value = 0.01;
    run.quantities["energy"].value = 0.01 * power;
    run.quantities["core_clock"].value = 1e9;
    runs.push_back(run);
  }
  return runs;
}

TEST(TemperatureStudy, SlopesOfWhatChangesAndOfWhatDoesNot) {
  Random random(1);
  const TemperatureStudy study = study_temperature(runs_of_a_gpu(random, 300, 0.01));
  EXPECT_TRUE(study.why_not.empty()) << study.why_not;
  EXPECT_NEAR(study.slopes.at("power").slope, 0.5, 0.03);
  EXPECT_TRUE(study.slopes.at("power").significant());
  EXPECT_NEAR(study.slopes.at("energy").slope, 0.005, 0.0003);
  EXPECT_FALSE(study.slopes.at("time").significant());
  EXPECT_FALSE(study.slopes.at("core_clock").significant());
  EXPECT_NEAR(study.coolest, 35, 0.1);
  const EnergyScatter scatter = scatter_of(study, 50);
  EXPECT_GT(scatter.measured, 2.5 * scatter.corrected);
  EXPECT_NEAR(scatter.corrected, 0.01, 0.002);
  EXPECT_NEAR(energy_at(study, study.runs[0], 50), 0.65, 0.03);
}

// The interval holds, also where runs that follow each other are alike.
TEST(TemperatureStudy, IntervalsHoldTheTruth) {
  for (const double correlation : {0.0, 0.6}) {
    Random random(2);
    int inside = 0;
    constexpr int kDraws = 400;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> celsius, power;
      for (const Measurement& run : runs_of_a_gpu(random, 200, 0.01, correlation)) {
        celsius.push_back(*run.value("temperature"));
        power.push_back(*run.value("power"));
      }
      const auto line = slope_over_temperature(celsius, power);
      inside += line->low <= 0.5 && line->high >= 0.5;
    }
    EXPECT_GE(inside, kDraws * (correlation == 0 ? 0.92 : 0.85)) << correlation;
    EXPECT_LT(inside, kDraws) << "an interval that always holds says nothing";
  }
}

// Whole degrees: the ends of the range are known to half a degree each.
TEST(TemperatureStudy, ACoarseThermometerWidensTheInterval) {
  const std::vector<double> celsius{40, 41, 42, 43, 44, 45, 46, 47, 48, 49};
  std::vector<double> power;
  for (const double t : celsius) power.push_back(100 + t);
  EXPECT_NEAR(slope_over_temperature(celsius, power)->standard_error, 0, 1e-9);
  EXPECT_NEAR(slope_over_temperature(celsius, power, 1)->standard_error, std::sqrt(2.0 / 12) / 9, 1e-9);
}

TEST(TemperatureStudy, WhatIsNotTheGpusOwnIsNotKept) {
  Random random(3);
  std::vector<Measurement> runs = runs_of_a_gpu(random, 60, 0.01);
  runs[30].warnings = {"asked 1410 MHz, ran 1275 MHz, power cap"};
  EXPECT_THAT(study_temperature(runs).why_not, HasSubstr("power limit"));
  for (Measurement& run : runs) run.warnings.clear();
  for (Measurement& run : runs)
    run.quantities["temperature"].value = 50 + 0.01 * (run.quantities["temperature"].value - 50);
  EXPECT_THAT(study_temperature(runs).why_not, HasSubstr("0.2 degrees only"));
  for (Measurement& run : runs) run.quantities["temperature"].value = 50;
  EXPECT_TRUE(study_temperature(runs).slopes.empty());
  for (std::size_t i = 5; i < runs.size(); ++i) runs[i].status = Status::runtime_error;
  const TemperatureStudy few = study_temperature(runs);
  EXPECT_EQ(few.runs.size(), 5u);
  EXPECT_EQ(few.failed, 55u);
  EXPECT_FALSE(few.why_not.empty());
}

}  // namespace
}  // namespace ergotune
