// What a plan ends with is measured again beside its rivals, as a search does it; what reads well by luck or within a
// wide interval does not win.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parameters.hpp"
#include "temporary_folder.hpp"
#include "tune/fake_evaluator.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune {
namespace {

using test::FakeEvaluator;

/// Four tiles at five clocks; 2 is the best tile, 900 MHz the best clock.
struct PlanConfirmation : ::testing::Test {
  Problem problem;
  SearchSpace space;
  FakeEvaluator evaluator;
  /// Changes the first reading of some configurations.
  std::function<void(double tile, double clock, Quantity& energy)> first = [](double, double, Quantity&) {};

  PlanConfirmation() : space(twenty(problem)) {
    evaluator.measure = [this](const Configuration& c, int time) {
      const double tile = c[0].as_real(), clock = c[1].as_real();
      Measurement m = test::timed(1e-3 * (1 + 0.1 * std::abs(tile - 2)) * 1000 / clock, 1e-6);
      Quantity energy{true_energy(tile, clock), 0, 7, "fake", "", Provenance::measured};
      energy.standard_error = 0.002 * energy.value;
      if (time == 0) first(tile, clock, energy);
      m.quantities["energy"] = energy;
      return m;
    };
  }
  static SearchSpace twenty(Problem& problem) {
    problem.name = "twenty";
    problem.parameters = {test::listed("tile", {1, 2, 3, 4}, ParameterKind::code),
                          test::listed("core_clock_mhz", {600, 750, 900, 1050, 1200}, ParameterKind::core_clock_mhz)};
    return problem.build_space({});
  }
  static double true_energy(double tile, double clock) {
    return (1 + 0.1 * std::abs(tile - 2)) * (1 + 1e-6 * (clock - 900) * (clock - 900));
  }
  PlanResult run(const std::string& name, const PlanOptions& options = {}) {
    return run_plan(find_plan(name, problem), problem, space, evaluator, options);
  }
  Configuration at(int tile, int clock) const { return {Value(tile), Value(clock)}; }
  int measured(int tile, int clock) { return evaluator.measured[*space.index_of(at(tile, clock))]; }
};

TEST_F(PlanConfirmation, WhoReadsWellByLuckLosesWhenItIsMeasuredAgain) {
  first = [](double tile, double clock, Quantity& energy) {
    if (tile == 4 && clock == 600) energy.value = 0.5;
  };
  const PlanResult result = run("global_energy");
  EXPECT_EQ(result.best->configuration, at(2, 900));
  EXPECT_GE(result.confirmation_repeats, 3);
  ASSERT_TRUE(result.probability_best);
  EXPECT_GT(*result.probability_best, 0.9);
  EXPECT_GE(measured(4, 600), 3);
  EXPECT_GE(measured(2, 900), 4);
  EXPECT_EQ(measured(1, 1200), 1) << "no rival";
  EXPECT_EQ(result.requested, 20u) << "confirmation is no evaluation";
  // What is told of a setting is what was confirmed there.
  for (const PlanPoint& point : result.stages.back().by_setting) {
    if (point.configuration[1] != Value(900)) continue;
    EXPECT_EQ(point.measurement.value("energy"), result.best->measurement.value("energy"));
  }
}

// An interval that could hold much: it neither wins nor decides what the next stage builds on.
TEST_F(PlanConfirmation, AWideIntervalDecidesNoStage) {
  first = [](double tile, double clock, Quantity& energy) {
    if (tile == 4 && clock == 1200) energy.value *= 0.7, energy.standard_error = 0.25 * energy.value;
  };
  const PlanResult result = run("block_to_freq");
  EXPECT_EQ(result.stages.front().best->configuration, at(2, 1200));
  EXPECT_EQ(result.best->configuration, at(2, 900));
  EXPECT_GE(measured(2, 900), 4);
}

// A neighbour on the machine spoils readings, not configurations: of three rounds those count that could be measured,
// and where none could, what the search measured stands, and is not confirmed.
TEST_F(PlanConfirmation, ARoundThatCouldNotBeMeasuredTakesNothingFromItsConfiguration) {
  const auto honest = evaluator.measure;
  int spoiled = 1;
  evaluator.measure = [&](const Configuration& c, int time) {
    if (time == 0 || time > spoiled) return honest(c, time);
    Measurement lost;
    lost.status = Status::unsupported;
    lost.message = "energy is known to +-60 % only";
    return lost;
  };
  const PlanResult result = run("global_energy");
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->configuration, at(2, 900));
  EXPECT_NEAR(*result.best->measurement.value("energy"), 1, 1e-9);
  EXPECT_THAT(result.best->measurement.warnings,
              testing::ElementsAre("a round is left out: energy is known to +-60 % only"));
  EXPECT_EQ(result.why_not, "");

  spoiled = 1000;
  evaluator.measured.clear();
  const PlanResult none = run("energy_then_clocks");
  EXPECT_EQ(none.why_not, "");
  ASSERT_TRUE(none.best);
  EXPECT_EQ(none.best->configuration, at(2, 900));
  EXPECT_EQ(none.confirmation_repeats, 0);
  EXPECT_EQ(none.best->measurement.warnings.size(), 1u);
}

// Two candidates, three rounds, 2 s each by what the search took; the third is one that only the best have.
TEST_F(PlanConfirmation, SaysHowLongItWillTake) {
  const auto honest = evaluator.measure;
  evaluator.measure = [&](const Configuration& c, int time) {
    Measurement m = honest(c, time);
    m.measure_seconds = 2;
    return m;
  };
  std::vector<double> left;
  PlanOptions options;
  options.progress = [&](const std::string&, const std::string& stage, const SessionProgress& progress) {
    if (!stage.ends_with("confirming")) return;
    left.push_back(progress.seconds_left.value_or(-1));
    EXPECT_EQ(progress.evaluated, 20u) << "of the stage";
    EXPECT_EQ(progress.total, 20u);
  };
  run("global_energy", options);
  ASSERT_GE(left.size(), 7u) << "at first, and after each";
  EXPECT_EQ(left.front(), 12);
  EXPECT_EQ(left.back(), 0);
}

TEST_F(PlanConfirmation, OnlyWhereItIsWantedAndMeasured) {
  PlanOptions options;
  options.confirm = false;
  EXPECT_EQ(run("global_energy", options).confirmation_repeats, 0);
  EXPECT_EQ(measured(2, 900), 1);
  evaluator.provenance_value = Provenance::replayed;
  EXPECT_EQ(run("global_energy").confirmation_repeats, 0);
  EXPECT_EQ(measured(2, 900), 2);
}

// The comparison, the store and a second run tell the same winner with the same number, and nothing is measured twice.
TEST_F(PlanConfirmation, EveryPlaceTellsTheSameNumber) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "plans.db");
  SessionKey identity;
  identity.problem = problem.name;
  const std::int64_t session = store.session(identity, {"tile", "core_clock_mhz"}, "energy", "{}", "");
  const auto compare = [&] {
    LedgerOptions kept;
    kept.store = &store;
    kept.session = session;
    kept.problem = &problem;
    Ledger ledger(space, evaluator, kept);
    return compare_plans(find_plans("energy_then_clocks,global_energy", problem), problem, ledger);
  };
  const PlanComparison comparison = compare();
  const std::size_t requested = evaluator.requests.size();
  for (const PlanResult& plan : comparison.plans) {
    ASSERT_TRUE(plan.best);
    EXPECT_EQ(plan.best->configuration, at(2, 900));
    EXPECT_GE(plan.confirmation_repeats, 3);
    for (const StoredRow& row : store.results(session)) {
      if (row.configuration != at(2, 900)) continue;
      EXPECT_EQ(row.measurement.value("energy"), plan.best->measurement.value("energy"));
    }
  }
  const PlanComparison again = compare();
  EXPECT_EQ(evaluator.requests.size(), requested);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.plans[i].best->measurement.value("energy"), comparison.plans[i].best->measurement.value("energy"));
    EXPECT_EQ(again.plans[i].stages.front().best->configuration,
              comparison.plans[i].stages.front().best->configuration);
    EXPECT_EQ(again.plans[i].requested, comparison.plans[i].requested);
    EXPECT_EQ(again.plans[i].known, again.plans[i].requested);
    EXPECT_EQ(again.plans[i].evaluated, 0u) << "measured in this run";
    EXPECT_EQ(again.plans[i].stages.front().evaluated, 0u);
  }
}

}  // namespace
}  // namespace ergotune
