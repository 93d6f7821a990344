#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "measure/energy/energy.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/metrics.hpp"
#include "parameters.hpp"

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
  Parameter block = test::listed("block", {32, 64});
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
  Parameter time = test::listed("time", {100});
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

using testing::ElementsAre;

Measurement round_of(double time, double error, double gflops) {
  Measurement m;
  m.quantities["time"] = {time, error, 4, "device events", "", Provenance::measured};
  m.quantities["registers"] = {time > 2 ? 40.0 : 32.0, 0, 1, "", "", Provenance::measured};
  m.metrics["gflops"] = gflops;
  m.metric_errors["gflops"] = 3;
  m.times = {time};
  m.finished_at = 10 * time;
  return m;
}

TEST(CombineRounds, TakesTheMeanAndTheLargerError) {
  // The scatter: values 1, 2, 6 have a variance of 7 and so an error of sqrt(7 / 3); their own errors come to
  // sqrt(0.03) / 3.
  std::vector<Measurement> rounds{round_of(1, 0.1, 100), round_of(2, 0.1, 100), round_of(6, 0.1, 100)};
  rounds[0].warnings = {"power cap"};
  rounds[1].warnings = {"power cap", "thermal"};
  rounds[2].quantities["energy"] = {5, 1, 2, "", "", Provenance::measured};
  const Measurement all = combine(rounds);
  EXPECT_DOUBLE_EQ(all.quantities.at("time").value, 3);
  EXPECT_NEAR(all.quantities.at("time").standard_error, std::sqrt(7.0 / 3), 1e-12);
  EXPECT_NEAR(all.half_width("time"), 4.302653 * std::sqrt(7.0 / 3), 1e-4) << "Student's t of three rounds";
  EXPECT_EQ(all.quantities.at("time").n, 12);
  EXPECT_EQ(all.quantities.at("registers").value, 32) << "of the code, not of a round";
  EXPECT_DOUBLE_EQ(all.metrics.at("gflops"), 100);
  EXPECT_NEAR(all.metric_errors.at("gflops"), std::sqrt(27.0) / 3, 1e-12) << "no scatter: their own";
  EXPECT_THAT(all.times, ElementsAre(1, 2, 6));
  EXPECT_THAT(all.warnings, ElementsAre("power cap", "thermal"));
  EXPECT_EQ(all.finished_at, 60);
  EXPECT_EQ(all.status, Status::ok);

  rounds[1].status = Status::not_converged;
  EXPECT_EQ(combine(rounds).status, Status::not_converged);
  rounds[2].status = Status::timeout;
  EXPECT_EQ(combine(rounds).status, Status::not_converged) << "one that failed is left out";
  EXPECT_EQ(combine(rounds).times.size(), 2u);
  rounds[2].status = Status::wrong_result;
  EXPECT_EQ(combine(rounds).status, Status::wrong_result) << "a wrong result counts whenever it shows";
}

SlopeEstimate sensor(const char* name, double value, double error) {
  SlopeEstimate e;
  e.valid = true;
  e.value = value;
  e.standard_error = error;
  e.degrees = 20;
  e.n = 5;
  e.covered = {1, 2};
  e.method = "m";
  e.sensor = name;
  return e;
}

TEST(CombineRounds, LeaveOutTheOneThatCouldNotBeMeasured) {
  std::vector<Measurement> rounds{round_of(9, 0.1, 900), round_of(1, 0.1, 100), round_of(3, 0.1, 300)};
  rounds[0].status = Status::unsupported;
  rounds[0].message = "energy is known to +-60 % only";
  rounds[2].quantities["energy"] = {5, 1, 2, "", "", Provenance::measured};
  const Measurement all = combine(rounds);
  EXPECT_EQ(all.status, Status::ok);
  EXPECT_DOUBLE_EQ(all.quantities.at("time").value, 2);
  EXPECT_THAT(all.times, ElementsAre(1, 3));
  EXPECT_DOUBLE_EQ(all.quantities.at("energy").value, 5) << "of those that have it, the first or not";
  EXPECT_THAT(all.warnings, ElementsAre("a round is left out: energy is known to +-60 % only"));
  rounds[1].status = rounds[2].status = Status::unsupported;
  EXPECT_EQ(combine(rounds).status, Status::unsupported) << "none could";
  rounds[2].status = Status::wrong_result;
  EXPECT_EQ(combine(rounds).status, Status::wrong_result);
}

TEST(CombineSensors, CoverTheirDisagreementAndSayIt) {
  const SlopeEstimate apart = combine({sensor("a", 10, 0.1), sensor("b", 11, 0.1)});
  EXPECT_NEAR(apart.standard_error, std::hypot(0.1, 0.25), 1e-12);
  EXPECT_THAT(apart.warnings, ElementsAre("sensors disagree by 9.5 %"));
  const SlopeEstimate little = combine({sensor("a", 100, 0.1), sensor("b", 101, 0.1)});
  EXPECT_NEAR(little.standard_error, std::hypot(0.1, 0.25), 1e-12);
  EXPECT_TRUE(little.warnings.empty()) << "under 2 %";
  EXPECT_DOUBLE_EQ(combine({sensor("a", 10, 0.1), sensor("b", 10.4, 0.1)}).standard_error, 0.1)
      << "as their errors let expect";
}

TEST(CombineSensors, ThePoorTheInvalidAndTheUnmeteredStandBack) {
  EXPECT_EQ(combine({sensor("a", 10, 0.1), sensor("b", 10, 0.31)}).sensor, "a");
  EXPECT_EQ(combine({sensor("a", 10, 0.1), sensor("b", 10, 0.29)}).sensor, "a,b");
  auto metered = sensor("b", 10, 0.4), invalid = sensor("c", 10, 0.01);
  metered.metered = true;
  invalid.valid = false;
  invalid.why_not = "it stopped";
  EXPECT_EQ(combine({sensor("a", 10, 0.1), metered, invalid}).sensor, "b");
  auto other = invalid;
  other.why_not = "it went back";
  EXPECT_EQ(combine({invalid, other}).why_not, "it stopped; it went back");
  EXPECT_FALSE(combine(std::vector<SlopeEstimate>{}).valid);
  const SlopeEstimate none = combine({sensor("a", 10, 0.1), sensor("b", 13.1, 0.1)});
  EXPECT_FALSE(none.valid);
  EXPECT_EQ(none.why_not, "a reads 10 and b reads 13.1: neither is credible");
  EXPECT_TRUE(combine({sensor("a", 10, 0.1), sensor("b", 12.9, 0.1)}).valid);
  EXPECT_TRUE(combine({sensor("a", 10, 0.1), sensor("b", 20, 2)}).valid) << "who knows nothing contradicts nobody";
  auto rail = sensor("b", 20, 0.1);
  rail.scope = SensorScope::module;
  EXPECT_TRUE(combine({sensor("a", 10, 0.1), rail}).valid) << "of another part of the machine";
}

TEST(Propagate, ErrorsToFirstOrder) {
  std::vector<UncertainInput> inputs{{"a", 3.0, 0.1}, {"b", 4.0, 0.2}, {"c", 5, 0}, {"d", 1.0, INFINITY}};
  const auto value = propagate(Expression::parse("a * b + c + 0 * d"), inputs);
  EXPECT_DOUBLE_EQ(value->value, 17);
  EXPECT_NEAR(value->standard_error, std::hypot(0.4, 0.6), 1e-12);
  EXPECT_EQ(inputs[0].value.as_real(), 3) << "as they were";
  EXPECT_FALSE(propagate(Expression::parse("a / (c - 5)"), inputs));
  EXPECT_FALSE(propagate(Expression::parse("a + nobody"), inputs));
  EXPECT_FALSE(propagate(Expression::parse("1e300 * a * 1e300"), inputs));
  EXPECT_EQ(propagate(Expression::parse("c * 2"), inputs)->standard_error, 0);
  EXPECT_EQ(propagate(Expression::parse("a * 1e300"), inputs)->standard_error, 0) << "no number can hold it";
}

}  // namespace
}  // namespace ergotune
