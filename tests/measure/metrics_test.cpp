#include "measure/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ergotune {
namespace {

Measurement measured(double time, double energy, double time_error, double energy_error) {
  Measurement m;
  m.quantities["time"] = {time, time_error, 10, "test", "", Provenance::measured};
  m.quantities["energy"] = {energy, energy_error, 10, "test", "", Provenance::measured};
  return m;
}

Metric metric(const std::string& name, const std::string& text) { return {name, Expression::parse(text), ""}; }

TEST(Metrics, SeeParametersAndCarryErrors) {
  Parameter block;
  block.name = "block";
  block.values = {32, 64};
  Measurement m = measured(2, 6, 0.02, 0.3);
  evaluate_metrics(m,
                   {metric("power_per_thread", "energy / time / block"), metric("broken", "energy / (time - 2)"),
                    metric("unknown", "voltage * 2")},
                   {block}, {64}, {});
  EXPECT_NEAR(m.metrics.at("power_per_thread"), 6.0 / 2 / 64, 1e-12);
  const double expected = 3.0 / 64 * std::sqrt(0.01 * 0.01 + 0.05 * 0.05);
  EXPECT_NEAR(m.metric_errors.at("power_per_thread"), expected, 0.01 * expected);
  EXPECT_EQ(m.metrics.count("broken"), 0u);
  EXPECT_EQ(m.metrics.count("unknown"), 0u);
}

TEST(Metrics, WhatWasMeasuredHidesAParameterAndAConstantOfItsName) {
  Parameter time;
  time.name = "time";
  time.values = {100};
  Measurement m = measured(2, 6, 0, 0);
  evaluate_metrics(m, {metric("speed", "1 / time"), metric("twice", "2 * speed")}, {time}, {100},
                   {{"time", Value(50)}, {"speed", Value(7)}});
  EXPECT_EQ(m.metrics.at("speed"), 0.5);
  EXPECT_EQ(m.metrics.at("twice"), 1.0);
  EXPECT_TRUE(m.metric_errors.empty()) << "what is known exactly has no error";
}

TEST(Metrics, SeeNoParameterThatTheConfigurationLeavesOut) {
  Parameter block, unroll;
  block.name = "block";
  unroll.name = "unroll";
  Measurement m = measured(2, 6, 0, 0);
  evaluate_metrics(m, {metric("a", "time * block"), metric("b", "time * unroll")}, {block, unroll}, {Value(3)}, {});
  EXPECT_EQ(m.metrics.at("a"), 6);
  EXPECT_EQ(m.metrics.count("b"), 0u);
  evaluate_metrics(m, {metric("a", "time * block"), metric("b", "time * clock")}, {block}, {Value(3), Value(1410)}, {});
  EXPECT_EQ(m.metrics.at("a"), 6) << "execution parameters come last";
  EXPECT_EQ(m.metrics.count("b"), 0u);
}

}  // namespace
}  // namespace ergotune
