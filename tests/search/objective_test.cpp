#include "search/objective.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/error.hpp"
#include "measure/metrics.hpp"

namespace ergotune {
namespace {

Measurement measured(double time, double energy, double time_error = 0, double energy_error = 0) {
  Measurement m;
  m.quantities["time"] = {time, time_error, 10, "test", "", Provenance::measured};
  m.quantities["energy"] = {energy, energy_error, 10, "test", "", Provenance::measured};
  return m;
}

Objective parse(const std::string& text, const std::vector<Metric>& metrics = {}) {
  ObjectiveSpec spec;
  spec.text = text;
  return Objective::parse(spec, metrics);
}

Metric metric(const std::string& name, const std::string& text) { return {name, Expression::parse(text), ""}; }

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(Objective, SingleQuantity) {
  Objective time = parse("time");
  EXPECT_EQ(time.kind(), Objective::Kind::single);
  EXPECT_EQ(time.count(), 1u);
  EXPECT_TRUE(time.needs("time"));
  EXPECT_FALSE(time.needs("energy"));
  const Outcome outcome = time.outcome(measured(2, 5, 0.1));
  ASSERT_TRUE(outcome.ok);
  EXPECT_EQ(outcome.values, std::vector<double>{2});
  EXPECT_NEAR(outcome.standard_errors.at(0), 0.1, 1e-9);
  EXPECT_TRUE(time.better(measured(1, 9), measured(2, 1)));
}

TEST(Objective, ZeroNegativeAndNonFiniteEnergiesNeverWin) {
  Objective energy = parse("energy");
  for (const double bad : {0.0, -3.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(energy.outcome(measured(1, bad)).ok) << bad;
    EXPECT_FALSE(energy.better(measured(1, bad), measured(1, 100))) << bad;
    EXPECT_TRUE(energy.better(measured(1, 100), measured(1, bad))) << bad;
    EXPECT_FALSE(energy.value(measured(1, bad)).has_value());
  }
  // an energy of zero in a derived objective neither
  Objective product = parse("time * energy");
  EXPECT_FALSE(product.outcome(measured(1, 0)).ok);
  Measurement failed = measured(1, 1);
  failed.status = Status::wrong_result;
  EXPECT_FALSE(energy.outcome(failed).ok);
  failed.status = Status::not_converged;
  EXPECT_TRUE(energy.outcome(failed).ok);
}

TEST(Objective, MaximisedMetricIsTurnedAndNeedsItsQuantities) {
  const std::vector<Metric> metrics = {metric("gflops", "2.0 * n ** 3 / time / 1e9"),
                                       metric("gflops_per_watt", "gflops * time / energy")};
  Objective objective = parse("max gflops_per_watt", metrics);
  EXPECT_EQ(objective.direction(), Direction::maximise);
  EXPECT_TRUE(objective.needs("energy"));
  EXPECT_TRUE(objective.needs("time"));
  Measurement good = measured(1, 2), bad = measured(1, 4);
  const Constants constants{{"n", Value(1000)}};
  evaluate_metrics(good, metrics, {}, {}, constants);
  evaluate_metrics(bad, metrics, {}, {}, constants);
  EXPECT_NEAR(good.metrics.at("gflops"), 2.0, 1e-12);
  EXPECT_TRUE(objective.better(good, bad));
  EXPECT_LT(objective.outcome(good).values[0], objective.outcome(bad).values[0]);
  EXPECT_NEAR(*objective.value(good), 1.0, 1e-12);  // as the user reads it
}

TEST(Objective, WeightedExpressionPropagatesErrors) {
  Objective objective = parse("0.3*time + 0.7*energy");
  const Outcome outcome = objective.outcome(measured(10, 20, 1, 2));
  EXPECT_NEAR(outcome.values[0], 17, 1e-12);
  EXPECT_NEAR(outcome.standard_errors[0], std::hypot(0.3, 1.4), 1e-9);
}

TEST(Objective, ConstraintRelativeToTheBestSoFar) {
  Objective objective = parse("energy subject to time <= 1.1 * best(time)");
  EXPECT_EQ(objective.kind(), Objective::Kind::constrained);
  const Measurement fast = measured(1.0, 50), slow = measured(1.5, 20), good = measured(1.05, 40);
  EXPECT_NEAR(objective.outcome(slow).values[0], 20, 1e-12);  // nothing faster is known yet
  objective.outcome(fast);
  EXPECT_GT(objective.outcome(slow).values[0], 50);  // now it breaks the bound: worse than all that hold it
  EXPECT_NEAR(objective.outcome(good).values[0], 40, 1e-12);
  EXPECT_TRUE(objective.better(good, fast));
  EXPECT_TRUE(objective.better(fast, slow));
  EXPECT_TRUE(objective.better(slow, measured(3, 1)));  // nearer to the bound
}

TEST(Objective, RevisionTellsWhenOutcomesAreOutOfDate) {
  Objective objective = parse("energy subject to time <= 1.1 * best(time)");
  objective.outcome(measured(2, 5));
  const auto before = objective.revision();
  objective.outcome(measured(3, 4));
  EXPECT_EQ(objective.revision(), before);
  objective.outcome(measured(1, 9));
  EXPECT_GT(objective.revision(), before);
  EXPECT_GT(objective.outcome(measured(2, 5)).values[0], 9);
  Objective plain = parse("energy");
  plain.outcome(measured(2, 5));
  plain.outcome(measured(1, 4));
  EXPECT_EQ(plain.revision(), 0u);
}

TEST(Objective, BoundsFromBelowTakeTheLargest) {
  const std::vector<Metric> metrics = {metric("gflops", "100 / time")};
  Objective objective = parse("energy subject to gflops >= 0.9 * best(gflops) and energy < 1000", metrics);
  Measurement fast = measured(1.0, 50), slow = measured(2.0, 10);
  evaluate_metrics(fast, metrics, {}, {}, {});
  evaluate_metrics(slow, metrics, {}, {}, {});
  objective.outcome(slow);
  objective.outcome(fast);
  EXPECT_TRUE(objective.better(fast, slow));
}

TEST(Objective, ParetoHasSeveralValuesAndDominance) {
  Objective objective = parse("pareto(time, max energy)");
  EXPECT_EQ(objective.kind(), Objective::Kind::pareto);
  EXPECT_EQ(objective.count(), 2u);
  EXPECT_EQ(objective.outcome(measured(2, 5)).values, (std::vector<double>{2, -5}));
  EXPECT_TRUE(objective.better(measured(1, 5), measured(2, 5)));
  EXPECT_FALSE(objective.better(measured(1, 4), measured(2, 5)));
}

TEST(Objective, LexicographicDecidesByTheNextLevelWithinTheTolerance) {
  Objective objective = parse("lexicographic(time within 5%, energy)");
  EXPECT_EQ(objective.kind(), Objective::Kind::lexicographic);
  const Measurement fastest = measured(1.0, 50), near = measured(1.04, 30), far = measured(1.2, 1);
  for (const auto& m : {fastest, near, far}) objective.outcome(m);
  EXPECT_TRUE(objective.better(near, fastest));
  EXPECT_TRUE(objective.better(fastest, far));
  EXPECT_TRUE(objective.better(near, far));
  // and so do the values a strategy is told
  EXPECT_LT(objective.outcome(near).values[0], objective.outcome(fastest).values[0]);
  EXPECT_LT(objective.outcome(fastest).values[0], objective.outcome(far).values[0]);
}

TEST(Objective, MessagesNameTheFault) {
  EXPECT_NE(message_of("enrgy").find("energy"), std::string::npos);
  EXPECT_NE(message_of("").find("empty"), std::string::npos);
  EXPECT_NE(message_of("energy subject to time").find("condition"), std::string::npos);
  EXPECT_NE(message_of("pareto(time)").find("two"), std::string::npos);
  EXPECT_NE(message_of("energy subject time < 2").find("subject to"), std::string::npos);
  EXPECT_NE(message_of("energy subject to time == 2").find("inequality"), std::string::npos);
  EXPECT_NE(message_of("3").find("names no quantity"), std::string::npos);
  EXPECT_FALSE(message_of("time +").empty());
  EXPECT_FALSE(message_of("best(").empty());
}

TEST(Objective, FunctionsNamedLikeDirectionsAreFunctions) {
  Objective objective = parse("max(time, energy)");
  EXPECT_EQ(objective.direction(), Direction::minimise);
  EXPECT_EQ(objective.outcome(measured(2, 5)).values[0], 5);
}

TEST(ObjectiveUnit, FollowsFromTheExpression) {
  const std::vector<Metric> metrics{{"gflops", Expression::parse("1/time"), "GFLOP/s"},
                                    {"bare", Expression::parse("2*time"), ""}};
  const auto unit = [&](const std::string& text) { return Objective::parse({text, std::nullopt, {}}, metrics).unit(); };
  EXPECT_EQ(unit("time"), "s");
  EXPECT_EQ(unit("-time"), "s");
  EXPECT_EQ(unit("2 * time"), "s");
  EXPECT_EQ(unit("max gflops"), "GFLOP/s");
  EXPECT_EQ(unit("time * energy"), "J s");
  EXPECT_EQ(unit("energy / time"), "J/s");
  EXPECT_EQ(unit("1 / (time * energy)"), "1/(J s)");
  EXPECT_EQ(unit("time + cpu_time"), "s");
  EXPECT_EQ(unit("log(time)"), "");
  EXPECT_EQ(unit("0.3 * time + 0.7 * energy"), "");
  EXPECT_EQ(unit("time + 1"), "");
  EXPECT_EQ(unit("bare"), "");
  EXPECT_EQ(unit("energy / best(energy)"), "");
  EXPECT_EQ(unit("energy subject to time <= 2"), "J");
  EXPECT_EQ(unit("pareto(time, energy)"), "s") << "of its first";
}

}  // namespace
}  // namespace ergotune
