// Energies of several sensors are added: none is counted twice.
#include "power/sensors/sensor_overlap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

TEST(SensorOverlap, OfAMachineEachDeviceIsTakenOnce) {
  {
    test::RaplTree tree;
    EXPECT_THAT(sensors_of_machine(), ElementsAre("rapl:packages"));
  }
  {
    test::CrayTree tree(4, false);
    EXPECT_THAT(sensors_of_machine(), ElementsAre("pm_counters:node"));
  }
  {
    test::AmdgpuTree tree;
    EXPECT_THAT(sensors_of_machine(), ElementsAre("amdgpu:card0", "amdgpu:card1"));
  }
  {
    test::OrinTree tree;
    EXPECT_THAT(sensors_of_machine(), ElementsAre("tegra:VDD_GPU_SOC", "tegra:VDD_CPU_CV", "tegra:VIN_SYS_5V0"));
    tree.put(std::string(test::OrinTree::kChip) + "/hwmon/hwmon1/in3_label", "VDD_IN");
    EXPECT_THAT(sensors_of_machine(), ElementsAre("tegra:VDD_IN"));
  }
}

TEST(SensorOverlap, TwoThatSeeTheSameAreRefused) {
  test::RaplTree tree;
  const auto open = [](const std::vector<std::string>& ids) {
    std::vector<std::unique_ptr<Sensor>> sensors;
    for (const std::string& id : ids) sensors.push_back(open_sensor(id));
    require_disjoint(sensors);
  };
  EXPECT_THROW(open({"rapl:package-0", "rapl:package-0"}), UserError);
  EXPECT_THROW(open({"rapl:package-1", "rapl:packages"}), UserError);
  EXPECT_THROW(open({"rapl:package-0/core", "rapl:package-0"}), UserError);
  EXPECT_THROW(open({"rapl:psys", "rapl:package-0/dram"}), UserError);
  EXPECT_NO_THROW(open({"rapl:package-0", "rapl:package-1", "rapl:package-0/dram"}));
  SensorInfo node, accelerator, gpu, package;
  node.id = "pm_counters:node", accelerator.id = "pm_counters:accel0";
  gpu.id = "nvml:0/energy", package.id = "rapl:packages", package.scope = SensorScope::package;
  EXPECT_TRUE(sensors_overlap(gpu, node) && sensors_overlap(gpu, accelerator) && sensors_overlap(node, package));
  EXPECT_FALSE(sensors_overlap(gpu, package) || sensors_overlap(accelerator, package));
}

}  // namespace
}  // namespace ergotune
