// A clock for each kernel, on a simulated device whose true time and energy are known at each clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analysis/kernel_clocks.hpp"
#include "analysis/size_choice.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/recorded/simulated.hpp"

namespace ergotune {
namespace {

/// The true time and energy of `launches` launches of a kernel on an A100.
KernelStretch stretch(const std::string& name, const std::string& flops, const std::string& bytes, double launches) {
  const DeviceProfile profile = load_device_profile("a100");
  Problem problem;
  problem.simulation["flops"] = Expression::parse(flops);
  problem.simulation["bytes"] = Expression::parse(bytes);
  problem.simulation["efficiency"] = Expression::parse("0.9");
  Parameter clock;
  clock.name = "core_clock_mhz";
  clock.kind = ParameterKind::core_clock_mhz;
  const std::vector<double> all = core_clocks(profile);
  for (std::size_t i = 0; i < all.size(); i += 10) clock.values.push_back(Value(all[i]));
  problem.parameters = {clock};
  const SimulatedDevice device(profile, problem, problem.parameters);
  KernelStretch out{name, {}};
  for (const Value& value : clock.values) {
    const Measurement truth = device.truth({value});
    out.at.push_back(
        {value.as_real(), launches * truth.value("time").value(), launches * truth.value("energy").value(), 0});
  }
  return out;
}

/// Energy of the stretches at these clocks, in small steps of time: a clock is in force `latency` after its request.
double energy_in_steps(const std::vector<KernelStretch>& stretches, const std::vector<std::size_t>& clocks,
                       double latency) {
  double joules = 0;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const std::size_t from = clocks[i > 0 ? i - 1 : clocks.size() - 1];
    if (from != clocks[i] && stretches[i].at[from].seconds <= latency) return std::numeric_limits<double>::infinity();
    constexpr int kSteps = 20000;
    double now = 0;
    for (int step = 0; step < kSteps; ++step) {  // equal shares of its work
      const AtClock& at = stretches[i].at[now < latency ? from : clocks[i]];
      now += at.seconds / kSteps;
      joules += at.joules / kSteps;
    }
  }
  return joules;
}

std::vector<KernelStretch> two_kernels(double launches) {
  return {stretch("compute", "2e11", "1e8", launches), stretch("stream", "1e9", "2e10", launches)};
}

TEST(KernelClocks, AreThoseOfLeastEnergyAmongAll) {
  const std::vector<KernelStretch> kernels = two_kernels(10);
  const std::size_t clocks = kernels[0].at.size();
  for (const double latency : {1e-6, 0.01, 0.03, 0.1}) {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < clocks; ++a)
      for (std::size_t b = 0; b < clocks; ++b) best = std::min(best, energy_in_steps(kernels, {a, b}, latency));
    EXPECT_NEAR(choose_kernel_clocks(kernels, latency).joules, best, 1e-3 * best) << latency;
  }
}

TEST(KernelClocks, KeepToTheSlowdown) {
  const std::vector<KernelStretch> kernels = two_kernels(200);
  const double fastest = kernels[0].at.back().seconds + kernels[1].at.back().seconds;
  const KernelClocks chosen = choose_kernel_clocks(kernels, 0.025, 0.05);
  EXPECT_LE(chosen.seconds, 1.05 * fastest * (1 + 1e-9));
  EXPECT_LE(chosen.common_seconds, 1.05 * fastest * (1 + 1e-9));
  EXPECT_TRUE(chosen.pays);
  EXPECT_LT(chosen.joules, 0.95 * chosen.common_joules) << "the memory loses no time at a low clock";
}

TEST(KernelClocks, PayForLongKernelsAndNotForShortOnes) {
  const double latency = 0.025;
  const KernelClocks lasting = choose_kernel_clocks(two_kernels(200), latency);
  EXPECT_TRUE(lasting.pays);
  EXPECT_EQ(lasting.changes, 2u);
  EXPECT_LT(lasting.clocks_mhz[1], lasting.clocks_mhz[0]) << "the memory is as fast at a low clock";
  const KernelClocks brief = choose_kernel_clocks(two_kernels(0.5), latency);
  EXPECT_FALSE(brief.pays);
  EXPECT_EQ(brief.changes, 0u);
  EXPECT_EQ(brief.clocks_mhz[0], brief.common_mhz);
  EXPECT_EQ(brief.joules, brief.common_joules);
  const auto alike = stretch("one", "2e11", "1e8", 200);
  EXPECT_FALSE(choose_kernel_clocks({alike, alike}, latency).pays) << "the same clock suits both";
}

TEST(KernelClocks, PayOnlyBeyondTheErrorsOfWhatWasMeasured) {
  std::vector<KernelStretch> kernels = two_kernels(200);
  const KernelClocks certain = choose_kernel_clocks(kernels, 0.025);
  for (KernelStretch& kernel : kernels)
    for (AtClock& at : kernel.at) at.joules_error = certain.saved;
  EXPECT_FALSE(choose_kernel_clocks(kernels, 0.025).pays);
  EXPECT_THROW(choose_kernel_clocks({}, 0.025), UserError);
}

/// Configuration 0 is best for small sizes, 2 for large ones, 1 is never far off.
SizedResults three() {
  SizedResults results;
  results.names = {"N"};
  for (const double n : {256, 512, 1024, 2048, 4096}) results.sizes.push_back({n});
  results.value = {{1.0, 2.0, 5.0, 12.0, 30.0}, {1.1, 2.2, 4.4, 8.8, 17.6}, {2.0, 3.0, 4.0, 8.0, 16.0}};
  return results;
}

TEST(SizeChoice, OneForAllDependsOnWhatCounts) {
  SizedResults results = three();
  const auto mean = best_over_sizes(results, false);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->configuration, 1u);
  EXPECT_NEAR(mean->mean, 0.1, 1e-9);
  results.value[1] = {1.0, 2.0, 4.0, 8.0, 20.0};  // seldom worse, then by more
  results.value[2] = {1.1, 2.2, 4.4, 8.8, 17.6};
  EXPECT_EQ(best_over_sizes(results, false)->configuration, 1u);
  EXPECT_EQ(best_over_sizes(results, true)->configuration, 2u);
}

TEST(SizeChoice, ATreeSplitsWhereTheBestChanges) {
  const auto tree = size_tree(three(), 6, false);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->leaves, 2u);
  EXPECT_NEAR(tree->mean, 0, 1e-9);
  EXPECT_EQ(tree->choose({300}), 0u);
  EXPECT_EQ(tree->choose({512}), 0u);
  EXPECT_EQ(tree->choose({1024}), 2u);
  EXPECT_EQ(tree->choose({1e6}), 2u);
  const auto stump = size_tree(three(), 1, false);
  EXPECT_EQ(stump->leaves, 1u);
  EXPECT_EQ(stump->choose({256}), 1u);
}

TEST(SizeChoice, ATreeLooksAtEachConstant) {
  SizedResults results;
  results.names = {"M", "N"};
  results.sizes = {{1, 10}, {1, 1000}, {50, 10}, {50, 1000}};
  results.value = {{1, 1, 3, 3}, {3, 3, 1, 2}, {4, 4, 4, 1}};
  const auto tree = size_tree(results, 6, false);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->leaves, 3u);
  EXPECT_EQ(tree->choose({1, 1000}), 0u);
  EXPECT_EQ(tree->choose({50, 10}), 1u);
  EXPECT_EQ(tree->choose({50, 1000}), 2u);
}

// The first split of two gains nothing by itself.
TEST(SizeChoice, ATreeFindsOneSizeAmongOthers) {
  SizedResults results;
  results.names = {"N"};
  results.sizes = {{256}, {1024}, {4096}};
  results.value = {{1, 1.5, 1}, {1.5, 1, 1.5}};
  const auto tree = size_tree(results, 6, false);
  ASSERT_TRUE(tree);
  EXPECT_NEAR(tree->mean, 0, 1e-9);
  EXPECT_EQ(tree->choose({1024}), 1u);
  EXPECT_EQ(tree->choose({4096}), 0u);
  EXPECT_EQ(size_tree(results, 2, false)->leaves, 1u) << "two leaves lose what one does";
}

TEST(SizeChoice, WhatFailsAtASizeIsNotChosenThere) {
  SizedResults results = three();
  results.value[1][0].reset();
  results.value[2][1].reset();
  results.value[0][4].reset();
  EXPECT_FALSE(best_over_sizes(results, false));
  const auto tree = size_tree(results, 6, false);
  ASSERT_TRUE(tree);
  for (std::size_t s = 0; s < results.sizes.size(); ++s)
    EXPECT_TRUE(results.value[tree->choose(results.sizes[s])][s]) << s;
  for (auto& row : results.value) row[2].reset();
  EXPECT_FALSE(size_tree(results, 6, false)) << "a size without a result";
}

}  // namespace
}  // namespace ergotune
