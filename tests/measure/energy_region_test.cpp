// Regions of code beside sensors that go on: a processor of known power.
#include "ergotune/energy_region.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "ergotune/error.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"

namespace ergotune {
namespace {

struct EnergyRegions : ::testing::Test {
  test::RaplTree tree;
  test::Writer writer{[this] {
    tree.energy("intel-rapl:0", 50 * host_seconds());
    ::usleep(1000);
  }};
};

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST_F(EnergyRegions, AMovedRegionIsItsNewOwners) {
  const EnergyMonitor monitor({"rapl:package-0"});
  EnergyRegion first(monitor, "work");
  EnergyRegion second = std::move(first);
  rest(0.4);
  first.end();  // NOLINT: nothing is left to end
  EXPECT_THROW(first.energy(), UserError);
  const RegionEnergy energy = second.energy();
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 50 * energy.seconds, energy.half_width + 1);
  EnergyRegion third(monitor, "other");
  third = EnergyRegion(monitor, "work");
  third.end();
  const auto totals = monitor.totals();
  ASSERT_EQ(totals.size(), 2u) << "the region that was replaced has ended";
  EXPECT_EQ(totals.front().regions, 2u);
}

TEST_F(EnergyRegions, ThatEndAreUnitsOfWorkForAGovernor) {
  const auto file = std::filesystem::temp_directory_path() / ("ergotune-progress-test-" + std::to_string(::getpid()));
  std::ofstream(file).flush();
  ::setenv("ERGOTUNE_PROGRESS", file.c_str(), 1);
  {
    const EnergyMonitor monitor({"rapl:package-0"});
    for (int i = 0; i < 3; ++i) EnergyRegion(monitor).end();
    EXPECT_EQ(std::filesystem::file_size(file), 3u);
  }
  ::unsetenv("ERGOTUNE_PROGRESS");
  std::filesystem::remove(file);
}

TEST_F(EnergyRegions, IdlePowerIsMeasuredOrGiven) {
  EnergyMonitor monitor({"rapl:package-0"});
  EXPECT_THROW(monitor.set_idle_power({1, 2}), UserError);
  EXPECT_THROW(monitor.set_idle_power({-1}), UserError);
  EXPECT_THROW(monitor.measure_idle(0), UserError);
  EnergyRegion before(monitor);
  rest(0.4);
  EXPECT_FALSE(before.energy().above_idle);
  monitor.measure_idle(0.4);
  const RegionEnergy energy = before.energy();
  ASSERT_TRUE(energy.above_idle);
  EXPECT_NEAR(*energy.above_idle, 0, energy.above_idle_half_width + 1);
}

}  // namespace
}  // namespace ergotune
