// What the papers say, on simulated devices (docs/reproduction.md). Nothing here is measured.
#include <gtest/gtest.h>

#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "tune/plans/plan.hpp"
#include "tune/plans/sample_clocks.hpp"

namespace ergotune {
namespace {

Problem with_clocks(Problem problem, double low, double high, int count) {
  problem.execution_parameters.clear();
  Parameter parameter;
  parameter.name = "core_clock_mhz";
  parameter.kind = ParameterKind::core_clock_mhz;
  for (int i = 0; i < count; ++i) parameter.values.push_back(Value(low + (high - low) * i / (count - 1)));
  problem.parameters.push_back(parameter);
  return problem;
}

// Going Green, Section V-E: 82.4, 78.9, 77.8 and 80.0 % on A100, RTX A4000, Titan RTX and V100. The ranges
// are those of its figures, up to the advertised turbo clock.
TEST(GoingGreen, TheModelRemovesFourFifthsOfTheClocks) {
  struct Gpu {
    const char* profile;
    double low, high, paper;
  };
  for (const Gpu& gpu : {Gpu{"a100", 210, 1410, 0.824}, Gpu{"rtx_a4000", 210, 1560, 0.789},
                         Gpu{"titan_rtx", 495, 1770, 0.778}, Gpu{"v100", 135, 1380, 0.800}}) {
    const DeviceProfile profile = load_device_profile(gpu.profile);
    const Problem problem = with_clocks(full_load_problem(), gpu.low, gpu.high, 60);
    const SearchSpace space = problem.build_space(problem.constants_for(profile.name, profile.properties));
    const auto evaluator = make_simulated(profile, problem, space);
    Ledger ledger(space, *evaluator, {});
    SamplingOptions options;
    options.progress = [](const PowerSample&, std::size_t done, std::size_t total) { EXPECT_LE(done, total); };
    const PowerSampling sampling = sample_clocks(ledger, options);
    const PowerModel model = fit_power_model(sampling.samples);
    ASSERT_TRUE(model.found) << gpu.profile << ": " << model.why_not;
    const ClockRange range = suggested_range(model);
    EXPECT_GE(range.removed_share, 0.77) << gpu.profile;
    EXPECT_LE(range.removed_share, 0.84) << gpu.profile;
    EXPECT_NEAR(range.removed_share, gpu.paper, 0.05) << gpu.profile;
    printf("%s: ridge %.0f MHz, optimum %.0f MHz, removed %.1f %% (paper %.1f %%)\n", gpu.profile,
           model.ridge_mhz.value, model.optimal_clock_mhz.value, 100 * range.removed_share, 100 * gpu.paper);
  }
}

std::map<std::string, PlanResult> run(const std::string& profile_name, const Problem& problem, const std::string& names,
                                      std::uint64_t& size) {
  const DeviceProfile profile = load_device_profile(profile_name);
  const SearchSpace space = problem.build_space(problem.constants_for(profile.name, profile.properties));
  size = space.size();
  SimulationOptions exact;
  exact.time_noise = exact.power_noise = 0;
  const SimulatedDevice device(profile, problem, space.parameters(), exact);
  const auto evaluator = make_simulated(profile, problem, space, exact);
  const auto truth = [&](ConfigurationIndex i) { return device.truth(space.configuration(i)).value("energy"); };
  std::map<std::string, PlanResult> out;
  for (PlanResult& result : compare_plans(find_plans(names, problem), problem, space, *evaluator, {}, truth).plans) {
    out[result.plan] = std::move(result);
  }
  return out;
}

// Going Green, Section V-A and Figure 3: race-to-idle is never the least energy, the two-stage plans come close.
TEST(GoingGreen, RaceToIdleIsNeverLeastAndTwoStagesComeClose) {
  Problem gemm = load_problem(ERGOTUNE_SOURCE_DIR "/examples/clocks/simulated_gemm.toml");
  struct Gpu {
    const char* profile;
    double low, high;
  };
  for (const Gpu& gpu : {Gpu{"a100", 210, 1410}, Gpu{"rtx_a4000", 210, 1560}, Gpu{"rtx_a6000", 210, 1800},
                         Gpu{"titan_rtx", 495, 1770}}) {
    std::uint64_t size = 0;
    auto results =
        run(gpu.profile, with_clocks(gemm, gpu.low, gpu.high, 7),
            "race_to_idle,energy_at_max_clock,race_to_idle_then_clocks,energy_then_clocks,global_energy,model_steered",
            size);
    for (const auto& [name, result] : results) {
      ASSERT_TRUE(result.best) << name << ": " << result.why_not;
      printf("%s %s: +%.2f %%, %lu of %lu asked\n", gpu.profile, name.c_str(), *result.above_optimum_percent,
             static_cast<unsigned long>(result.requested), static_cast<unsigned long>(size));
    }
    EXPECT_GT(*results.at("race_to_idle").above_optimum_percent, 5) << gpu.profile;
    EXPECT_GT(*results.at("energy_at_max_clock").above_optimum_percent,
              *results.at("energy_then_clocks").above_optimum_percent);
    EXPECT_LT(*results.at("race_to_idle_then_clocks").above_optimum_percent, 5) << gpu.profile;
    EXPECT_LT(*results.at("energy_then_clocks").above_optimum_percent, 5) << gpu.profile;
    EXPECT_LT(*results.at("model_steered").above_optimum_percent, 2) << gpu.profile;
  }
}

// Frericks, Section 5.4: on a Jetson Xavier NX BlockToFreq and FreqToBlock lie at most 4.55 % above
// GlobalEnergy, with 78 % fewer configurations; RaceToIdle lies 35-50 % above.
TEST(Thesis, StagePlansComeWithinFivePercentAtAFifthOfTheEvaluations) {
  Problem kernel;
  kernel.name = "matmul";
  Parameter x, y;
  x.name = "block_size_x";
  x.values = {8, 16, 24, 32};
  y.name = "block_size_y";
  y.values = {8, 16, 24, 32};
  kernel.parameters = {x, y};
  kernel.simulation["flops"] = Expression::parse("2 * 4096**3");
  kernel.simulation["bytes"] = Expression::parse("4 * 2 * 4096**3 / (2 * min(block_size_x, block_size_y))");
  kernel.simulation["efficiency"] = Expression::parse("0.35");
  const DeviceProfile profile = load_device_profile("jetson_xavier_nx");
  Parameter clock;
  clock.name = "core_clock_mhz";
  clock.kind = ParameterKind::core_clock_mhz;
  for (const double f : core_clocks(profile)) clock.values.push_back(Value(f));
  kernel.parameters.push_back(clock);
  std::uint64_t size = 0;
  auto results = run("jetson_xavier_nx", kernel, "race_to_idle,block_to_freq,freq_to_block,global_energy", size);
  for (const auto& [name, result] : results) {
    ASSERT_TRUE(result.best) << name << ": " << result.why_not;
    printf("jetson %s: +%.2f %%, %lu of %lu asked, %g MHz\n", name.c_str(), *result.above_optimum_percent,
           static_cast<unsigned long>(result.requested), static_cast<unsigned long>(size),
           result.best->configuration.back().as_real());
  }
  for (const char* name : {"block_to_freq", "freq_to_block"}) {
    EXPECT_LE(*results.at(name).above_optimum_percent, 5) << name;
    EXPECT_LE(results.at(name).requested, size / 5 + 1) << name;
  }
  EXPECT_GT(*results.at("race_to_idle").above_optimum_percent, 20);
  const double best = results.at("global_energy").best->configuration.back().as_real();
  EXPECT_GT(best, 400);
  EXPECT_LT(best, 900);
}

}  // namespace
}  // namespace ergotune
