// The load that calibration switches on and off, on a device that a test makes.
#include "measure/device_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/measure/calibration.hpp"
#include "measure/fake_device.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

struct Loads : testing::Test {
  test::FakeDevice device;
  test::FakeLaunch seen;
  int steps = 0;
  double seconds_per_step = 1e-6;
  void SetUp() override {
    device.kernels["ergotune_load"] = [this](const test::FakeLaunch& launch) {
      seen = launch;
      std::memcpy(&steps, launch.scalars.at(1).data(), sizeof steps);
      return steps * seconds_per_step;
    };
  }
};

TEST_F(Loads, AreLaunchesOfHalfAMillisecondOnAnyDevice) {
  for (const double each : {1e-9, 1e-6, 7e-6, 3e-4}) {
    seconds_per_step = each;
    const DeviceLoad load(device);
    EXPECT_NEAR(steps * each, 5e-4, 2.1e-4) << each;
  }
  seconds_per_step = 5e-6;  // half a millisecond by a hundred steps; 64 of them are near enough
  const DeviceLoad near(device);
  EXPECT_EQ(steps, 64);
  seconds_per_step = 0.1;
  const DeviceLoad slow(device);
  EXPECT_EQ(steps, 1) << "no launch is shorter";
}

TEST_F(Loads, FillTheDevice) {
  const DeviceLoad load(device);
  EXPECT_EQ(seen.geometry.block[0], 128u);
  EXPECT_EQ(seen.geometry.grid[0], 16u * 64) << "where nobody knows how large it is";
  EXPECT_EQ(seen.buffers.at(0)->bytes(), 4u * 128 * 16 * 64);
  device.device_info.properties["device.multiprocessors"] = Value(10);
  const DeviceLoad known(device);
  EXPECT_EQ(seen.geometry.grid[0], 160u);
  device.device_info.properties["device.multiprocessors"] = Value(0);
  const DeviceLoad none(device);
  EXPECT_EQ(seen.geometry.grid[0], 16u);
}

TEST_F(Loads, NeedABackendThatTheyAreWrittenFor) {
  device.device_info.backend = "host";
  EXPECT_THROW(DeviceLoad load(device), UserError);
}

TEST_F(Loads, WorkUntilTheyAreTold) {
  DeviceLoad load(device);
  const auto before = device.launches;
  const double begin = host_seconds();
  const TimeSpan span = load.work_until(begin + 0.01);
  EXPECT_GE(span.from, begin);
  EXPECT_GE(span.to, begin + 0.01 - 4e-3) << "not long before";
  EXPECT_GT(device.launches, before);
  const auto then = device.launches;
  load.work_until(host_seconds() - 1);
  EXPECT_EQ(device.launches, then) << "it is too late for any";
}

/// One that says 100 W at every look, or what its test wants.
struct SteadySensor : Sensor {
  SensorInfo about;
  std::size_t* looks;
  ReadStatus answer = ReadStatus::ok;
  SteadySensor(std::string id, std::size_t* count, ReadStatus status = ReadStatus::ok) : looks(count), answer(status) { about.id = std::move(id); }
  const SensorInfo& info() const override { return about; }
  void set_info(const SensorInfo& info) override { about = info; }
  ReadStatus read(std::vector<Reading>& out) override {
    ++*looks;
    if (answer == ReadStatus::ok) out.push_back({host_seconds(), 100});
    return answer;
  }
  void restart() override { *looks += 1000; }
  std::string last_error() const override { return "gone"; }
};

TEST_F(Loads, AreSwitchedOnAndOffWhileASensorIsRead) {
  std::size_t looks = 0, meter_looks = 0;
  const auto rig = make_device_rig(device, std::make_unique<SteadySensor>("s", &looks), std::make_unique<SteadySensor>("m", &meter_looks));
  EXPECT_TRUE(rig->has_meter());
  EXPECT_EQ(rig->meter_id(), "m");
  EXPECT_EQ(rig->sensor().id, "s");
  std::vector<Reading> meter;
  const double begin = host_seconds();
  const auto launches = device.launches;
  const CalibrationTrace trace = rig->drive({0.01, 0.02, 0.0, 0.01, 0.01, 0.01}, &meter);
  EXPECT_GE(host_seconds() - begin, 0.06 - 1e-4);
  EXPECT_GT(device.launches, launches);
  ASSERT_EQ(trace.busy.size(), 2u) << "no time is no load";
  EXPECT_GE(trace.busy[0].from, begin);
  EXPECT_GE(trace.busy[1].from, begin + 0.04 - 1e-4) << "after what was off";
  EXPECT_EQ(trace.readings.size(), looks - 1000) << "it was begun anew, once";
  EXPECT_EQ(meter.size(), meter_looks - 1000);
  rig->drive({0.0, 0.005}, nullptr);
  EXPECT_EQ(meter.size(), meter_looks - 1000) << "nobody has asked for it";
}

TEST_F(Loads, ASensorThatIsGoneIsSaid) {
  std::size_t looks = 0;
  const auto costs = make_device_rig(device, std::make_unique<SteadySensor>("s", &looks))->read_costs();
  EXPECT_EQ(costs.size(), looks);
  for (const double cost : costs) EXPECT_TRUE(cost >= 0 && cost < 60);
  const auto rig = make_device_rig(device, std::make_unique<SteadySensor>("s", &looks, ReadStatus::failed));
  EXPECT_FALSE(rig->has_meter());
  EXPECT_EQ(rig->meter_id(), "");
  EXPECT_THROW(rig->read_costs(), Error);
  const auto looks_in_vain = [&] {
    try {
      rig->drive({0.0, 0.005}, nullptr);
    } catch (const Error&) {
      return true;
    }
    return false;  // its reader has not been run yet
  };
  bool said = false;
  for (int i = 0; i < 1000 && !said; ++i) said = looks_in_vain();
  EXPECT_TRUE(said);
  const auto silent = make_device_rig(device, std::make_unique<SteadySensor>("s", &looks, ReadStatus::no_new_data));
  EXPECT_TRUE(silent->drive({0.0, 0.005}, nullptr).readings.empty());
}

}  // namespace
}  // namespace ergotune
