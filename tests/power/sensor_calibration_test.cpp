// A stored calibration is used for every sensor, whatever its driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "power/sensors/sensor.hpp"
#include "power/sensors/stored_calibration.hpp"

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

}  // namespace
}  // namespace ergotune
