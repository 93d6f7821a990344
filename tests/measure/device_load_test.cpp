// The load that calibration switches on and off, on a device that a test makes.
#include "measure/device_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/measure/calibration.hpp"
#include "measure/fake_device.hpp"
#include "measure/keep_warm.hpp"

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

TEST_F(Loads, AreSizedByTheShortestOfThreeLaunches) {
  seconds_per_step = 5e-6;
  for (const std::size_t slow : {1u, 2u, 3u}) {  // of three
    device.launches = 0;
    const auto usual = device.kernels["ergotune_load"];
    device.kernels["ergotune_load"] = [&, usual](const test::FakeLaunch& launch) {
      return usual(launch) * (device.launches == slow || device.launches == slow % 3 + 1 ? 100 : 1);
    };
    const DeviceLoad load(device);
    EXPECT_EQ(steps, 64);
    EXPECT_EQ(device.launches, 3u);
    device.kernels["ergotune_load"] = usual;
  }
}

TEST_F(Loads, AreTriedTwelveTimesWhereNoSizeFits) {
  device.kernels["ergotune_load"] = [](const test::FakeLaunch&) { return 2e-3; };
  const DeviceLoad load(device);
  EXPECT_EQ(device.launches, 12 * 3u);
}

/// A device that works beside the host: a marker has passed at the second look. Breaks after twenty batches.
struct Beside : test::FakeDevice {
  std::vector<const Marker*> under_way;
  std::size_t most = 0;
  std::vector<std::size_t> batches;
  bool counts = false, seen = false;
  void launch(LoadedKernel& kernel, std::size_t count = 1, Queue* queue = nullptr) override {
    FakeDevice::launch(kernel, count, queue);
    if (!counts) return;
    batches.push_back(count);
    if (batches.size() > 20) throw DeviceError(DeviceFault::runtime, "enough");
  }
  void record(Marker& marker, Queue* queue = nullptr) override {
    FakeDevice::record(marker, queue);
    if (!counts) return;
    under_way.push_back(&marker);
    most = std::max(most, under_way.size());
  }
  bool passed(const Marker& marker) override {
    EXPECT_FALSE(under_way.empty());
    EXPECT_EQ(under_way.at(0), &marker) << "the oldest is waited for";
    seen = !seen;
    if (!seen) under_way.erase(under_way.begin());
    return !seen;
  }
};

struct LoadsBeside : testing::Test {
  /// Works for a minute, or until the device breaks, with launches of so many seconds.
  static void work(Beside& device, double seconds) {
    device.kernels["ergotune_load"] = [seconds](const test::FakeLaunch&) { return seconds; };
    DeviceLoad load(device);
    device.counts = true;
    EXPECT_THROW(load.work_until(host_seconds() + 60), DeviceError);
  }
};

TEST_F(LoadsBeside, HaveTwoBatchesOfAMillisecondUnderWay) {
  Beside device;
  work(device, 0.32e-3);
  EXPECT_EQ(device.most, 2u);
  EXPECT_EQ(device.batches, std::vector<std::size_t>(21, 3));
}

TEST_F(LoadsBeside, QueueNothingThatWouldBeginTooLate) {
  Beside device;
  work(device, 100);
  EXPECT_EQ(device.most, 1u) << "the next one would begin in a hundred seconds";
  EXPECT_EQ(device.batches, std::vector<std::size_t>(21, 1));
}

TEST(KernelOfLoads, ComputesAsManyStepsAsItIsTold) {
  std::unique_ptr<Device> device;
  for (const auto& info : list_devices())
    if (info.backend == "opencl") device = open_device(info.id);
  if (!device) GTEST_SKIP() << "no OpenCL here";
  struct Listening : test::FakeDevice {
    std::string source;
    std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
      source = binary.bytes;
      return FakeDevice::load(binary);
    }
  } listening;
  listening.kernels["ergotune_load"] = [](const test::FakeLaunch&) { return 5e-4; };
  const DeviceLoad load(listening);
  CompileJob job;
  job.language = Language::opencl;
  job.source = listening.source;
  job.source_name = job.function = "ergotune_load";
  const auto kernel = device->load(device->make_compiler()->compile(job));
  const auto out = device->allocate(16 * sizeof(float));
  std::vector<KernelArgument> arguments(2);
  arguments[0].buffer = out.get();
  const int steps = 50;
  arguments[1].scalar.resize(sizeof steps);
  std::memcpy(arguments[1].scalar.data(), &steps, sizeof steps);
  kernel->bind({{2, 1, 1}, {8, 1, 1}, 0}, arguments);
  device->launch(*kernel);
  device->synchronise();
  std::vector<float> found(16);
  device->read(*out, std::as_writable_bytes(std::span(found)));
  for (int thread = 0; thread < 16; ++thread) {
    double sum = 0;
    for (int i = 0; i < 8; ++i) {
      // x -> 0.9993 x + 0.0007 i goes to i, from 0.1 i + 0.001 t
      const double share = std::pow(0.9993, steps);
      sum += share * (0.1 * i + 1e-3 * (thread % 8)) + (1 - share) * i;
    }
    EXPECT_NEAR(found[static_cast<std::size_t>(thread)], sum, 2e-5) << thread;
  }
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
  device.kernels["ergotune_load"] = [](const test::FakeLaunch&) -> double { throw DeviceError(DeviceFault::runtime, "gone"); };
  EXPECT_FALSE(KeepWarm::make(device)) << "it is a help, not a need";
  device.device_info.backend = "host";
  EXPECT_FALSE(KeepWarm::make(device));
}

TEST_F(Loads, SayWhenABoardCannotBeKeptWarmAnyMore) {
  bool broken = false;
  device.kernels["ergotune_load"] = [&](const test::FakeLaunch&) -> double {
    if (broken) throw DeviceError(DeviceFault::runtime, "gone");
    return 5e-4;
  };
  const auto warm = KeepWarm::make(device);
  broken = true;
  EXPECT_FALSE(warm->heat(60));
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
