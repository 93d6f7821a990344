// A stored calibration is used for every sensor, whatever its driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ergotune/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "power/sensors/sensor.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using test::AmdgpuTree;
using test::OrinTree;

struct StoredCalibration : ::testing::Test {
  control_trees::Tree place;
  void SetUp() override {
    setenv("ERGOTUNE_DATA_DIR", place.root().c_str(), 1);
    std::filesystem::create_directories(place.root() / "calibration");
  }
  /// As `calibrate --meter` leaves it.
  static void store(const SensorInfo& info) {
    std::ofstream(calibration_file(info))
        << R"({"driver":")" << info.driver << R"(","sensors":{")" << sensor_role(info)
        << R"(":{"kind":"windowed_power","update_period":{"value":0.1},"window":{"value":0.9},"lag":{"value":0.04},)"
        << R"("meter":{"sensor":"powersensor3:x","gain":1.1,"offset":-3,"gain_error":0.02,"level":250,"level_error":1.5}}}})";
  }
};

TEST_F(StoredCalibration, IsUsedForCardsOfTheAmdgpuDriver) {
  AmdgpuTree tree;
  const auto before = open_sensor("amdgpu:card0");
  EXPECT_FALSE(before->info().calibrated);
  EXPECT_GE(before->info().window, 0.9) << "an average that nobody knows is taken for a long one";
  store(before->info());
  std::vector<std::unique_ptr<Sensor>> opened;
  opened.push_back(open_sensor("amdgpu:card0"));
  for (auto& sensor : sensors_for_device("", "0000:03:00.0", false)) opened.push_back(std::move(sensor));
  ASSERT_EQ(opened.size(), 2u);
  for (const auto& sensor : opened) {
    const SensorInfo& info = sensor->info();
    EXPECT_TRUE(info.calibrated);
    EXPECT_EQ(info.window, 0.9);
    EXPECT_EQ(info.lag, 0.04);
    EXPECT_EQ(info.gain_error, 0.02);
    EXPECT_EQ(info.level, 250);
    EXPECT_EQ(info.level_error, 1.5);
    tree.power(200);
    std::vector<Reading> out;
    ASSERT_EQ(sensor->read(out), ReadStatus::ok);
    EXPECT_NEAR(out.at(0).value, 1.1 * 200 - 3, 1e-9);
  }
  for (const SensorInfo& info : list_sensors()) EXPECT_EQ(info.calibrated, info.id == "amdgpu:card0") << info.id;
}

TEST_F(StoredCalibration, IsUsedForRailsOfAJetson) {
  OrinTree tree;
  const std::string id = open_sensor("tegra")->info().id;
  store(open_sensor(id)->info());
  EXPECT_EQ(open_sensor(id)->info().window, 0.9);
  EXPECT_EQ(open_sensor(id)->info().gain, 1.1);
}

TEST_F(StoredCalibration, AGainMayBeAnInterval) {
  AmdgpuTree tree;
  const SensorInfo info = open_sensor("amdgpu:card0")->info();
  std::ofstream(calibration_file(info))
      << R"({"driver":"amdgpu","sensors":{"amdgpu:card0":{"meter":{"gain":{"value":1.1,"low":1.05,"high":1.15},"offset":0}}}})";
  EXPECT_EQ(open_sensor("amdgpu:card0")->info().gain, 1.1);
  EXPECT_NEAR(open_sensor("amdgpu:card0")->info().gain_error, 0.05 / 1.96 / 1.1, 1e-9);
}

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

constexpr const char* kPrinted =
    "==============NVSMI LOG==============\n"
    "Driver Version                            : 510.47.03\n"
    "GPU 00000000:01:00.0\n"
    "    Voltage\n"
    "        Graphics                          : 843.750 mV\n";

TEST(CoreVoltage, ComesFromTheProgramThatIsNamed) {
  const TemporaryFolder folder;
  const auto program = folder.path() / "smi";
  std::ofstream(program) << "#!/bin/sh\n[ \"$2\" = GPU-7 ] && [ \"$5\" = VOLTAGE ] && cat <<'E'\n" << kPrinted << "E\n";
  ::chmod(program.c_str(), 0755);
  setenv("ERGOTUNE_NVIDIA_SMI", program.c_str(), 1);
  EXPECT_DOUBLE_EQ(read_core_voltage("GPU-7").value_or(0), 0.84375);
  EXPECT_FALSE(read_core_voltage("GPU-8")) << "the program fails";
  setenv("ERGOTUNE_NVIDIA_SMI", "/nowhere/smi", 1);
  EXPECT_FALSE(read_core_voltage("GPU-7"));
  unsetenv("ERGOTUNE_NVIDIA_SMI");
}

TEST(CoreVoltage, OfATegraIsItsRegulators) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const char* text) {
    const auto file = folder.path() / "sys/class/regulator" / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write("regulator.0/microvolts", "800000\n");  // of no name
  write("regulator.1/name", "vdd-cpu\n");
  write("regulator.1/microvolts", "900000\n");
  write("regulator.2/name", "vdd-gpu\n");
  write("regulator.2/microvolts", "712500\n");
  setenv("ERGOTUNE_SYSFS_ROOT", folder.path().c_str(), 1);
  EXPECT_DOUBLE_EQ(read_core_voltage("").value_or(0), 0.7125);
  for (const auto& [text, volts] :
       {std::pair{"100000", 0.0}, {"100500", 0.1005}, {"2999999", 2.999999}, {"3000000", 0.0}, {"off", 0.0}}) {
    write("regulator.2/microvolts", text);
    EXPECT_DOUBLE_EQ(read_core_voltage("").value_or(0), volts) << text;
  }
  unsetenv("ERGOTUNE_SYSFS_ROOT");
  EXPECT_FALSE(voltage_in("Graphics : 5000 mV"));
}

}  // namespace
}  // namespace ergotune
