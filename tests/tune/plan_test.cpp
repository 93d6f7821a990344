#include "tune/plans/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "evaluate/recorded/simulated.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

/// A simulated tiled matrix product on a profile, with these core clocks.
struct Bench {
  Bench(const std::string& profile_name, std::vector<double> clocks, double noise = 0.0)
      : profile(load_device_profile(profile_name)), space(make_space(clocks)) {
    SimulationOptions options;
    options.time_noise = 0.3 * noise;
    options.power_noise = noise;
    device = std::make_unique<SimulatedDevice>(profile, problem, space.parameters(), options);
    evaluator = make_simulated(profile, problem, space, options);
  }
  SearchSpace make_space(const std::vector<double>& clocks) {
    problem.name = "gemm";
    problem.parameters = {test::listed("block_size_x", {16, 32, 64, 128}),
                          test::listed("block_size_y", {1, 2, 4, 8, 16}), test::listed("tile", {1, 2, 4, 8}),
                          test::listed("vector", {1, 2, 4})};
    std::vector<Value> values;
    for (const double f : clocks) values.push_back(Value(f));
    problem.parameters.push_back(test::listed("core_clock_mhz", values, ParameterKind::core_clock_mhz));
    Restriction threads;
    threads.expression = Expression::parse("block_size_x * block_size_y >= 32");
    problem.restrictions.push_back(threads);
    problem.simulation["flops"] = Expression::parse("2 * 4096**3");
    problem.simulation["bytes"] = Expression::parse("4 * 2 * 4096**3 / (16 * tile * min(block_size_x, 64) / 16)");
    problem.simulation["registers"] = Expression::parse("24 + 6 * tile * vector");
    return problem.build_space(profile.properties);
  }
  TrueEnergy truth() const {
    return [this](ConfigurationIndex index) { return device->truth(space.configuration(index)).value("energy"); };
  }
  double clock_of(const PlanResult& result) const { return result.best->configuration.back().as_real(); }
  std::map<std::string, PlanResult> run(const std::string& names, const PlanOptions& options = {}) {
    const PlanComparison all = compare_plans(find_plans(names, problem), problem, space, *evaluator, options, truth());
    std::map<std::string, PlanResult> out;
    for (const PlanResult& result : all.plans) out[result.plan] = result;
    return out;
  }

  DeviceProfile profile;
  Problem problem;
  SearchSpace space;
  std::unique_ptr<SimulatedDevice> device;
  std::unique_ptr<Evaluator> evaluator;
};

std::vector<double> grid(double low, double high, double step) {
  std::vector<double> out;
  for (double f = low; f <= high + 1e-6; f += step) out.push_back(f);
  return out;
}

struct Case {
  const char* name;
  const char* profile;
  std::vector<double> clocks;
  enum class Optimum { inside, lowest, highest } optimum;
};

class PlansFindTheOptimum : public testing::TestWithParam<Case> {};

TEST_P(PlansFindTheOptimum, WhereverItLies) {
  const Case& c = GetParam();
  Bench bench(c.profile, c.clocks);
  auto results =
      bench.run("global_energy,model_steered,energy_then_clocks,race_to_idle_then_clocks,block_to_freq,freq_to_block");
  const PlanResult& global = results.at("global_energy");
  ASSERT_TRUE(global.best);
  EXPECT_NEAR(*global.above_optimum_percent, 0, 1e-9);
  EXPECT_EQ(global.requested, bench.space.size());
  const double best_clock = bench.clock_of(global);
  switch (c.optimum) {
    case Case::Optimum::inside:
      EXPECT_GT(best_clock, c.clocks.front());
      EXPECT_LT(best_clock, c.clocks.back());
      break;
    case Case::Optimum::lowest:
      EXPECT_EQ(best_clock, c.clocks.front());
      break;
    case Case::Optimum::highest:
      EXPECT_EQ(best_clock, c.clocks.back());
      break;
  }
  for (const char* name :
       {"model_steered", "energy_then_clocks", "race_to_idle_then_clocks", "block_to_freq", "freq_to_block"}) {
    const PlanResult& result = results.at(name);
    ASSERT_TRUE(result.best) << name << ": " << result.why_not;
    EXPECT_LE(*result.above_optimum_percent, 5.0) << name;
    EXPECT_LT(result.requested, bench.space.size() / 3) << name;
  }
  EXPECT_LE(*results.at("model_steered").above_optimum_percent, 2.0);
  EXPECT_EQ(results.at("energy_then_clocks").requested, bench.space.size() / c.clocks.size() + c.clocks.size() - 1);
}

INSTANTIATE_TEST_SUITE_P(, PlansFindTheOptimum,
                         testing::Values(Case{"A100", "a100", grid(210, 1410, 75), Case::Optimum::inside},
                                         Case{"A4000", "rtx_a4000", grid(210, 1560, 75), Case::Optimum::inside},
                                         Case{"A100AboveItsRidge", "a100", grid(1110, 1410, 30), Case::Optimum::lowest},
                                         Case{"A100BelowItsRidge", "a100", grid(210, 930, 60), Case::Optimum::highest},
                                         Case{"H100", "h100", grid(345, 1980, 109), Case::Optimum::inside},
                                         Case{"XavierNX",
                                              "jetson_xavier_nx",
                                              {114.75, 204, 306, 408, 510, 599.25, 701.25, 752.25, 803.25, 854.25,
                                               905.25, 956.25, 1007.25, 1058.25, 1109.25},
                                              Case::Optimum::inside},
                                         Case{"FewClocks", "v100", grid(135, 1380, 207.5), Case::Optimum::inside}),
                         [](const auto& info) { return info.param.name; });

TEST(Plans, NoisyMeasurementsStillLeadNearTheOptimum) {
  Bench bench("a100", grid(210, 1410, 75), 0.02);
  for (const auto& [name, result] : bench.run("model_steered,energy_then_clocks,race_to_idle_then_clocks")) {
    ASSERT_TRUE(result.best) << name;
    EXPECT_LE(*result.above_optimum_percent, 6.0) << name;
  }
}

TEST(Plans, RaceToIdleIsFastButNeverTheLeastEnergy) {
  for (const char* profile : {"a100", "rtx_a4000", "rtx_a6000", "v100", "titan_rtx"}) {
    Bench bench(profile, spaced_clocks(core_clocks(load_device_profile(profile)), 7));
    auto results = bench.run("race_to_idle,energy_at_max_clock,global_energy");
    const auto value = [&](const char* plan, const char* name) {
      return *results.at(plan).best->measurement.value(name);
    };
    EXPECT_GT(*results.at("race_to_idle").above_optimum_percent, 0.5) << profile;
    EXPECT_LE(value("race_to_idle", "time"), value("global_energy", "time")) << profile;
    EXPECT_GE(value("energy_at_max_clock", "energy"), value("global_energy", "energy")) << profile;
  }
}

TEST(Plans, ModelSteeredSearchesOnlyAroundTheModelsClock) {
  Bench bench("rtx_a4000", grid(210, 1560, 75));
  auto results = bench.run("model_steered");
  const PlanResult& result = results.at("model_steered");
  ASSERT_TRUE(result.model && result.model_range);
  EXPECT_TRUE(result.model->found);
  EXPECT_GE(result.model_range->removed_share, 0.7);
  ASSERT_EQ(result.stages.size(), 3u);
  EXPECT_GE(bench.clock_of(result), result.model_range->low_mhz - 100);
  EXPECT_LE(bench.clock_of(result), result.model_range->high_mhz + 100);
  EXPECT_LT(result.requested, bench.space.size() / 5);
}

TEST(Plans, PowerCappingVariesTheLimit) {
  Bench bench("rtx_a4000", {2100});
  bench.problem.parameters.push_back(
      test::listed("power_limit_w", {100, 110, 120, 130, 140}, ParameterKind::power_limit_w));
  const SearchSpace space = bench.problem.build_space(bench.profile.properties);
  const auto evaluator = make_simulated(bench.profile, bench.problem, space);
  const PlanResult result = run_plan(find_plan("power_capping", bench.problem), bench.problem, space, *evaluator);
  ASSERT_TRUE(result.best) << result.why_not;
  EXPECT_LT(result.best->configuration.back().as_real(), 140);
  // Plans about clocks vary the limit where that is all there is.
  const PlanResult two = run_plan(find_plan("energy_then_clocks", bench.problem), bench.problem, space, *evaluator);
  ASSERT_TRUE(two.best) << two.why_not;
  EXPECT_LT(two.best->configuration.back().as_real(), 140);
  const PlanResult steered = run_plan(find_plan("model_steered", bench.problem), bench.problem, space, *evaluator);
  EXPECT_TRUE(steered.best) << steered.why_not;
}

// The best tile leaves an occupancy far below the bound: only block shapes are chosen by occupancy.
TEST(Plans, OccupancyChoosesBlockShapesAndLeavesOtherParametersFree) {
  Bench bench("a100", {705, 1005, 1410});
  PlanOptions options;
  options.budget.evaluations = bench.space.size();
  const auto plans = bench.run("guerreiro,global_energy", options);
  const PlanResult &walk = plans.at("guerreiro"), &all = plans.at("global_energy");
  ASSERT_TRUE(walk.best && all.best) << walk.why_not;
  EXPECT_EQ(walk.best->index, all.best->index);
  EXPECT_LT(walk.stages.front().space, bench.space.size());  // shapes of more than 1024 threads
}

// A walk of each size of the block by itself ended 38 % above the best.
TEST(Plans, OccupancyAlsoChoosesAmongBlocksOfTwoParameters) {
  Bench bench("a100", {705, 1005, 1410});
  std::erase_if(bench.problem.parameters, [](const Parameter& p) { return p.name == "tile" || p.name == "vector"; });
  bench.problem.constants = {{"tile", 1}, {"vector", 1}};
  const SearchSpace space = bench.problem.build_space(bench.profile.properties);
  const auto evaluator = make_simulated(bench.profile, bench.problem, space);
  const auto best = [&](const char* name) {
    return run_plan(find_plan(name, bench.problem), bench.problem, space, *evaluator).best;
  };
  const auto chosen = best("guerreiro"), of_all = best("global_energy");
  ASSERT_TRUE(chosen && of_all);
  EXPECT_LE(*chosen->measurement.value("energy"), 1.02 * *of_all->measurement.value("energy"));
}

// Going Green V-C: limits and code against clocks and code, and what ran under each.
TEST(Plans, CappingIsComparedWithClocks) {
  Bench bench("rtx_a4000", {900, 1200, 1500, 1800, 2100});
  bench.problem.parameters.push_back(test::listed("power_limit_w", {100, 120, 140}, ParameterKind::power_limit_w));
  const SearchSpace space = bench.problem.build_space(bench.profile.properties);
  const auto evaluator = make_simulated(bench.profile, bench.problem, space);
  const auto run = [&](const char* name) {
    return run_plan(find_plan(name, bench.problem), bench.problem, space, *evaluator);
  };
  const PlanResult limits = run("code_and_limits"), clocks = run("code_and_clocks"), both = run("global_energy");
  ASSERT_TRUE(limits.best && clocks.best && both.best) << limits.why_not << clocks.why_not;
  const auto& by_limit = limits.stages.back().by_setting;
  ASSERT_EQ(by_limit.size(), 3u);
  for (const PlanPoint& point : by_limit)
    EXPECT_EQ(point.configuration[4].as_real(), 2100) << "the clock is left alone";
  EXPECT_LT(*by_limit[0].measurement.value("core_clock"), *by_limit[2].measurement.value("core_clock") + 1);
  ASSERT_EQ(clocks.stages.back().by_setting.size(), 5u);
  const auto energy = [](const PlanResult& result) { return *result.best->measurement.value("energy"); };
  EXPECT_LE(energy(both), std::min(energy(limits), energy(clocks)) * 1.0001);
}

TEST(Plans, EnergyThenClocksBeginsAtTheBaseClock) {
  Bench bench("a100", grid(210, 1410, 75));
  PlanOptions options;
  options.base_clock_mhz = 765;
  const PlanResult result =
      run_plan(find_plan("energy_then_clocks", bench.problem), bench.problem, bench.space, *bench.evaluator, options);
  ASSERT_TRUE(result.best) << result.why_not;
  EXPECT_NEAR(result.stages.front().best->configuration.back().as_real(), 765, 38);
  EXPECT_TRUE(result.notes.empty());
  const PlanResult unknown =
      run_plan(find_plan("energy_then_clocks", bench.problem), bench.problem, bench.space, *bench.evaluator);
  EXPECT_EQ(unknown.stages.front().best->configuration.back().as_real(), 1410);
  EXPECT_EQ(unknown.notes.size(), 1u) << "nobody says it";
}

TEST(Plans, APlanThatCannotBeFollowedSaysWhy) {
  Bench bench("a100", {1410});
  bench.problem.parameters.pop_back();
  const SearchSpace space = bench.problem.build_space(bench.profile.properties);
  const auto evaluator = make_simulated(bench.profile, bench.problem, space);
  const PlanResult result = run_plan(find_plan("block_to_freq", bench.problem), bench.problem, space, *evaluator);
  EXPECT_FALSE(result.best);
  EXPECT_THAT(result.why_not, testing::HasSubstr("clocks"));
}

TEST(Plans, AUsersPlanMayNameParametersValuesStrategiesAndBudgets) {
  Bench bench("a100", grid(210, 1410, 75));
  PlanStageSpec first;
  first.free = {"tile", "vector"};
  first.fixed = {{"clocks", Value("min")}, {"block_size_x", Value(64)}, {"block_size_y", Value(4)}};
  first.objective = "energy";
  PlanStageSpec second;
  second.free = {"block_size_x", "block_size_y", "core_clock_mhz"};
  second.objective = "energy subject to time <= 1.2 * best(time)";
  second.strategy = "random";
  second.budget = "40";
  bench.problem.plans.push_back({"mine", {first, second}});
  const PlanResult result = run_plan(find_plan("mine", bench.problem), bench.problem, bench.space, *bench.evaluator);
  ASSERT_TRUE(result.best) << result.why_not;
  ASSERT_EQ(result.stages.size(), 2u);
  EXPECT_EQ(result.stages[0].requested, 12u);
  EXPECT_EQ(result.stages[0].best->configuration[0].as_integer(), 64);
  EXPECT_EQ(result.stages[0].best->configuration.back().as_real(), 210);
  EXPECT_LE(result.stages[1].requested, 40u);
  EXPECT_EQ(result.best->configuration[2], result.stages[0].best->configuration[2]);
}

TEST(Plans, UnknownNamesAreTheUsersMistake) {
  Bench bench("a100", {1410});
  EXPECT_THROW(find_plan("model_stered", bench.problem), UserError);
  PlanStageSpec stage;
  stage.free = {"tyle"};
  bench.problem.plans.push_back({"mine", {stage}});
  EXPECT_THROW(run_plan(find_plan("mine", bench.problem), bench.problem, bench.space, *bench.evaluator), UserError);
  EXPECT_EQ(find_plans("all", bench.problem).size(), shipped_plans().size() + 1);
  EXPECT_THROW(find_plans("", bench.problem), UserError);
}

TEST(Plans, ParametersOfOtherToolsAreKnownByName) {
  EXPECT_EQ(execution_kind(test::listed("nvml_gr_clock", {1410, 1275})), ParameterKind::core_clock_mhz);
  EXPECT_EQ(execution_kind(test::listed("tegra_gr_clock", {1410, 1275})), ParameterKind::core_clock_mhz);
  EXPECT_EQ(execution_kind(test::listed("nvml_mem_clock", {1215})), ParameterKind::memory_clock_mhz);
  EXPECT_EQ(execution_kind(test::listed("nvml_pwr_limit", {250, 150})), ParameterKind::power_limit_w);
  EXPECT_EQ(execution_kind(test::listed("block_size_x", {32})), ParameterKind::code);
  EXPECT_EQ(execution_kind(test::listed("clock_source", {"a", "b"})), ParameterKind::code);
}

}  // namespace
}  // namespace ergotune
