#include "model/power_model.hpp"

#include <gtest/gtest.h>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

/// Samples of a GPU with its ridge at 1000 MHz, clocks from 200 to 1600.
std::vector<PowerSample> samples(bool volts, double noise) {
  Random random(3);
  std::vector<PowerSample> out;
  for (int f = 200; f <= 1600; f += 140) {
    const double v = 1 + 0.0008 * std::max(0, f - 1000);
    PowerSample s;
    s.clock_mhz = f;
    s.power_w = (40 + 0.15 * f * v * v) * (1 + noise * random.normal());
    if (volts) s.voltage_v = 0.75 * v * (1 + 0.3 * noise * random.normal());
    out.push_back(s);
  }
  return out;
}

TEST(Ridges, VoltageAndPowerSeeTheSame) {
  for (const double noise : {0.0, 0.005}) {
    const RidgeComparison ridges = compare_ridges(samples(true, noise));
    ASSERT_TRUE(ridges.from_voltage && ridges.from_power) << noise;
    EXPECT_NEAR(ridges.from_voltage->value, 1000, 40) << noise;
    EXPECT_LE(ridges.from_voltage->low, 1010);
    EXPECT_GE(ridges.from_voltage->high, 990);
    EXPECT_NEAR(ridges.from_power->value, 1000, 60) << noise;
  }
}

TEST(Ridges, AVoltageThatStaysHasNone) {
  auto flat = samples(true, 0);
  for (PowerSample& s : flat) s.voltage_v = 0.8;
  EXPECT_FALSE(ridge_from_voltage(flat));
  EXPECT_FALSE(ridge_from_voltage(samples(false, 0)));
}

// A GPU that did behave as printed: v = 1 below 600 MHz, then 0.002 (f - 600).
TEST(Ridges, OfTheGpusClocksTheCheapestIsTaken) {
  const PowerModel model = fit_power_model(samples(false, 0));
  ASSERT_TRUE(model.found);
  const std::vector<double> clocks{400, 700, 980, 1060, 1300};
  EXPECT_EQ(best_clock(model, clocks), 980);
  EXPECT_FALSE(best_clock(model, {}));
}

}  // namespace
}  // namespace ergotune
