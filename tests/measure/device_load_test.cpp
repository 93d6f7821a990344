// The load that calibration switches on and off, on a device that a test makes.
#include "measure/energy/device_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "measure/calibration/calibration.hpp"
#include "measure/fake_device.hpp"

namespace ergotune {
namespace {

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

TEST_F(Loads, NeedABackendThatTheyAreWrittenFor) {
  device.device_info.backend = "host";
  EXPECT_THROW(DeviceLoad load(device), UserError);
}

TEST_F(Loads, KeepABoardWarmWhereTheyCan) {
  const auto warm = KeepWarm::make(device);
  ASSERT_TRUE(warm);
  const auto before = device.launches;
  const double begin = host_seconds();
  for (int i = 0; i < 1000 && device.launches == before; ++i)  // it may find its time over when it begins
    EXPECT_TRUE(warm->heat(0.002));
  EXPECT_GT(device.launches, before);
  EXPECT_GE(host_seconds(), begin + 0.001);
  device.kernels["ergotune_load"] = [](const test::FakeLaunch&) -> double {
    throw DeviceError(DeviceFault::runtime, "gone");
  };
  EXPECT_FALSE(KeepWarm::make(device)) << "it is a help, not a need";
  device.device_info.backend = "host";
  EXPECT_FALSE(KeepWarm::make(device));
}

/// One that says 100 W at every look, or what its test wants.
struct SteadySensor : Sensor {
  SensorInfo about;
  std::size_t* looks;
  ReadStatus answer = ReadStatus::ok;
  SteadySensor(std::string id, std::size_t* count, ReadStatus status = ReadStatus::ok) : looks(count), answer(status) {
    about.id = std::move(id);
  }
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
  const auto rig = make_device_rig(device, std::make_unique<SteadySensor>("s", &looks),
                                   std::make_unique<SteadySensor>("m", &meter_looks));
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

}  // namespace
}  // namespace ergotune
