// Ten GPUs whose power law is known, drawn at random: the ridge low, in the middle, high, nowhere, and under a power
// cap. Plans and model find the true optimum. ERGOTUNE_BOARDS says how many (10).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "parameters.hpp"
#include "tune/board_evaluator.hpp"
#include "tune/plans/device_model.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune {
namespace {

int gpus() {
  const char* text = std::getenv("ERGOTUNE_BOARDS");
  return text ? std::atoi(text) : 10;
}

const char* const kKinds[] = {"low ridge", "middle ridge", "high ridge", "no ridge", "capped"};

/// The physics of GPU `number`, over 24 clocks.
void draw_gpu(fake_nvml::FakeNvml& nvml, int number) {
  Random random(77 + static_cast<std::uint64_t>(number));
  auto& b = nvml.gpu();
  const double top = 1200 + 900 * random.uniform(), bottom = 250 + 150 * random.uniform();
  b.graphics_clock_count = 24;
  const double step = (top - bottom) / 23;
  for (int i = 0; i < 24; ++i) b.graphics_clocks[i] = static_cast<std::uint32_t>(std::lround(top - i * step));
  const int kind = number % 5;
  const double share = kind == 0 ? 0.25 : kind == 2 ? 0.8 : 0.5;
  b.knee_mhz = bottom + (share + 0.1 * (random.uniform() - 0.5)) * (top - bottom);
  b.p0 = 20 + 50 * random.uniform();
  b.full_power = 250 + 400 * random.uniform();
  b.v_min = 0.7;
  b.v_max = kind == 3 ? 0.7 : 1.0 + 0.25 * random.uniform();
  b.thermal_resistance = 20 / b.full_power;
  const double limit = kind == 4 ? (0.55 + 0.15 * random.uniform()) * b.full_power : 3 * b.full_power;
  b.power_limit_mw = b.default_power_limit_mw = static_cast<std::uint32_t>(limit * 1000);
  b.slowdown_temperature = 0;
  nvml.restart_gpus();
}

/// Twelve variants of a kernel: some wait for memory, some keep more of the GPU busy.
test::GpuLoad load_of(const Configuration& configuration) {
  const double tile = configuration[0].as_real(), unroll = configuration[1].as_real();
  test::GpuLoad load;
  load.mega_cycles = 20 * (1 + 0.12 * std::abs(tile - 3) + 0.06 * std::abs(unroll - 2));
  load.seconds = 1e-3 * (0.4 + 0.2 * std::abs(tile - 2));
  load.activity = 0.75 + 0.05 * tile + 0.02 * unroll;
  return load;
}

struct RandomGpu {
  explicit RandomGpu(int number) : kind(kKinds[number % 5]) {
    draw_gpu(nvml, number);
    problem.name = "twelve variants";
    std::vector<Value> clocks;
    for (int i = nvml.gpu().graphics_clock_count; i-- > 0;)
      clocks.emplace_back(static_cast<std::int64_t>(nvml.gpu().graphics_clocks[i]));
    problem.parameters = {test::listed("tile", {1, 2, 3, 4}, ParameterKind::code),
                          test::listed("unroll", {1, 2, 4}, ParameterKind::code),
                          test::listed("core_clock_mhz", clocks, ParameterKind::core_clock_mhz)};
    step = clocks[1].as_real() - clocks[0].as_real();
    space.emplace(problem.build_space({}));
    evaluator.emplace(nvml, space->parameters(), load_of, 5 + static_cast<std::uint64_t>(number));
  }
  /// Of those whose clock nothing holds back: a request that is throttled is another clock's energy.
  ConfigurationIndex optimum() {
    ConfigurationIndex best = 0;
    for (ConfigurationIndex i = 0; i < space->size(); ++i) {
      if (energy(i) < energy(best)) best = i;
    }
    return best;
  }
  double energy(ConfigurationIndex index) { return evaluator->true_energy(space->configuration(index)); }
  double clock(ConfigurationIndex index) const { return space->configuration(index).back().as_real(); }
  Configuration at_clock(ConfigurationIndex index, double clock) const {
    Configuration configuration = space->configuration(index);
    for (const Value& value : space->parameters().back().values)
      if (value.as_real() == clock) configuration.back() = value;
    return configuration;
  }
  /// The clock with least true energy for the code of a configuration.
  double best_clock_for(ConfigurationIndex index) {
    Configuration configuration = space->configuration(index);
    double best = 0, least = 1e300;
    for (const Value& value : space->parameters().back().values) {
      configuration.back() = value;
      const double energy = evaluator->true_energy(configuration);
      if (energy < least) least = energy, best = value.as_real();
    }
    return best;
  }

  std::string kind;
  fake_nvml::FakeNvml nvml{"generation=hopper virtual=1 step=0.002"};
  Problem problem;
  double step = 0;
  std::optional<SearchSpace> space;
  std::optional<test::GpuEvaluator> evaluator;
};

class RandomGpus : public ::testing::TestWithParam<int> {};

TEST_P(RandomGpus, PlansFindTheOptimum) {
  RandomGpu gpu(GetParam());
  const ConfigurationIndex best = gpu.optimum();
  std::uint64_t evaluated_by_global = 0, evaluated_by_model = 0;
  for (const char* name : {"global_energy", "model_steered", "energy_then_clocks", "race_to_idle_then_clocks",
                           "block_to_freq", "freq_to_block"}) {
    const PlanResult result = run_plan(find_plan(name, gpu.problem), gpu.problem, *gpu.space, *gpu.evaluator);
    ASSERT_TRUE(result.best) << name << " on a board with " << gpu.kind << ": " << result.why_not;
    const ConfigurationIndex found = result.best->index;
    SCOPED_TRACE(fmt::format("{} on a board with {}: {:.0f} MHz, truth {:.0f}", name, gpu.kind, gpu.clock(found),
                             gpu.clock(best)));
    const double above = gpu.energy(found) / gpu.energy(best) - 1;
    // A plan that chooses its code at another clock may end with other code: its clock is the best for that.
    const bool whole = std::string(name) == "global_energy" || std::string(name) == "model_steered";
    EXPECT_LE(above, whole ? 0.02 : 0.06);
    // Where energy hardly depends on the clock, noise decides on it.
    const double best_clock = gpu.best_clock_for(found);
    EXPECT_TRUE(std::abs(gpu.clock(found) - best_clock) <= 1.01 * gpu.step ||
                gpu.energy(found) <= 1.02 * gpu.evaluator->true_energy(gpu.at_clock(found, best_clock)))
        << "best clock for this code: " << gpu.best_clock_for(found);
    if (std::string(name) == "global_energy") evaluated_by_global = result.evaluated;
    if (std::string(name) == "model_steered") evaluated_by_model = result.evaluated;
  }
  EXPECT_EQ(evaluated_by_global, gpu.space->size());
  EXPECT_LE(evaluated_by_model, evaluated_by_global / 5) << gpu.kind;
}

/// The model of one kernel that keeps the whole GPU busy, against the physics.
TEST_P(RandomGpus, TheModelFindsTheOptimalClock) {
  RandomGpu gpu(GetParam());
  gpu.problem.parameters[0].values = {Value(3)};
  gpu.problem.parameters[1].values = {Value(2)};
  const SearchSpace space = gpu.problem.build_space({});
  const auto full = [](const Configuration&) { return test::GpuLoad{20, 0, 1}; };
  for (const bool volts : {false, true}) {
    test::GpuEvaluator evaluator(gpu.nvml, space.parameters(), full, 9);
    evaluator.tells_voltage = volts;
    Ledger ledger(space, evaluator, {});
    DeviceModel model;
    model.sampling = sample_clocks(ledger);
    model.model = fit_samples(model.sampling);
    ASSERT_TRUE(model.model.usable) << gpu.kind;
    double best = 0, least = 1e300;
    for (ConfigurationIndex i = 0; i < space.size(); ++i) {
      const double energy = evaluator.true_energy(space.configuration(i));
      if (energy < 0.9999 * least) least = energy, best = space.configuration(i).back().as_real();
    }
    SCOPED_TRACE(fmt::format("board with {}: {:.0f} [{:.0f}, {:.0f}] MHz, truth {:.0f}", gpu.kind,
                             model.model.optimal_clock_mhz.value, model.model.optimal_clock_mhz.low,
                             model.model.optimal_clock_mhz.high, best));
    const std::vector<double> suggested = suggested_clocks(model);
    ASSERT_FALSE(suggested.empty());
    double found = 1e300;
    for (ConfigurationIndex i = 0; i < space.size(); ++i)
      if (space.configuration(i).back().as_real() == optimal_clock(model))
        found = evaluator.true_energy(space.configuration(i));
    EXPECT_TRUE(std::abs(optimal_clock(model) - best) <= 1.01 * gpu.step || found <= 1.01 * least);
    EXPECT_LE(found / least, 1.02) << "at the model's clock";
    // Within +-10 % of it lies the best.
    EXPECT_LE(suggested.front(), best + 1.01 * gpu.step);
    EXPECT_GE(suggested.back(), best - 1.01 * gpu.step);
  }
}

INSTANTIATE_TEST_SUITE_P(, RandomGpus, ::testing::Range(0, gpus()));

}  // namespace
}  // namespace ergotune
