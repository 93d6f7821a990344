// The load that calibration switches on and off, and the clock that is watched meanwhile, on devices that a test makes.
#include "measure/device_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/measure/calibration.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "measure/clock_watch.hpp"
#include "measure/fake_device.hpp"
#include "measure/timing.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::ElementsAre;
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

struct WatchedClocks : testing::Test {
  test::AmdgpuTree tree;
  ClockWatch watch;
  const std::string hwmon = "/sys/class/drm/card0/device/hwmon/hwmon3/";
  /// Looks at least so often, with the core clock of the second half another one.
  void look(std::size_t wanted, double then_mhz) {
    watch.open("amdgpu:card0");
    watch.begin();
    const auto until = [&](std::size_t looks) {
      for (int i = 0; i < 10000 && watch.looks() < looks; ++i) ::usleep(1000);
    };
    until(wanted / 2);
    tree.put(hwmon + "freq1_input", static_cast<long long>(then_mhz * 1e6));
    until(2 * watch.looks() + 2);  // as often as before, however late it was put
    watch.end();
  }
  Measurement noted(double asked, bool all_reasons = false) const {
    Measurement measurement;
    watch.note(measurement, asked, 0.01, all_reasons);
    return measurement;
  }
};

TEST_F(WatchedClocks, GiveMeansInTheirUnits) {
  EXPECT_FALSE(watch.watching());
  EXPECT_FALSE(watch.look().core_clock_mhz);
  look(2, 2100);
  EXPECT_TRUE(watch.watching());
  EXPECT_NEAR(watch.look().core_clock_mhz.value_or(0), 2100, 1e-9);
  auto m = noted(2100);
  EXPECT_NEAR(m.quantities.at("core_clock").value, 2.1e9, 1);
  EXPECT_NEAR(m.quantities.at("memory_clock").value, 1e9, 1);
  EXPECT_NEAR(m.quantities.at("temperature").value, 61, 1e-9);
  EXPECT_EQ(m.quantities.count("throttled_share"), 0u) << "nobody counts it";
  EXPECT_TRUE(m.warnings.empty());
  m.quantities["core_clock"].value = 5;
  watch.note(m, 2100, 0.01);
  EXPECT_EQ(m.quantities.at("core_clock").value, 5) << "what is known already stays";
  watch.forget();
  EXPECT_EQ(watch.looks(), 0u);
  EXPECT_TRUE(noted(2100).quantities.empty());
  watch.open("");
  EXPECT_FALSE(watch.watching());
}

TEST_F(WatchedClocks, ThatChangeSaySo) {
  look(12, 1500);
  EXPECT_THAT(noted(2100).warnings, Contains("the clock changed while it was measured, from 2100 to 1500 MHz"));
  EXPECT_TRUE(noted(0).warnings.empty()) << "no clock was asked for";
}

TEST_F(WatchedClocks, HeldDownByTheirPowerSayThatAlone) {
  tree.power(299);
  look(12, 1500);
  const auto m = noted(2100);
  EXPECT_THAT(m.warnings, ElementsAre("power cap"));
  auto again = m;
  watch.note(again, 2100, 0.01);
  EXPECT_EQ(again.warnings.size(), 1u) << "once";
}

/// Rounds that take what a list says, the last one over and over.
struct Rounds : Workload {
  test::FakeDevice& device;
  std::vector<double> seconds;
  std::size_t at = 0, launches = 0;
  Rounds(test::FakeDevice& d, std::vector<double> s) : device(d), seconds(std::move(s)) {}
  void launch(std::size_t rounds) override {
    for (std::size_t i = 0; i < rounds; ++i, ++launches) device.now += seconds[std::min(at++, seconds.size() - 1)];
  }
};

struct Timing : testing::Test {
  test::FakeDevice device;
  MeasureOptions options;
  TimingResult measure(Rounds& rounds, double expected, double give_up_above = 1e300) {
    Timer timer(device, options);
    return timer.measure(rounds, expected, give_up_above, {}, nullptr);
  }
};

TEST_F(Timing, ShortRoundsShareASample) {
  options.min_sample_seconds = 1e-4;
  Rounds rounds(device, {3e-6});
  auto result = measure(rounds, 3e-6);
  EXPECT_EQ(result.launches_per_sample, 34u) << "1e-4 / 3e-6, rounded up";
  EXPECT_NEAR(result.estimate.value, 3e-6, 1e-15);
  EXPECT_EQ(rounds.launches, 34 * result.samples.size());
  EXPECT_EQ(measure(rounds, 1e-4).launches_per_sample, 1u);
  EXPECT_EQ(measure(rounds, 0).launches_per_sample, 20000u) << "never more";
  options.cold_cache = true;
  EXPECT_EQ(measure(rounds, 3e-6).launches_per_sample, 1u);
}

TEST_F(Timing, BeginsWithTheLeastAndEndsWithTheMost) {
  options.min_repeats = 5;
  options.max_repeats = 40;
  options.max_seconds = 100;
  options.precision = 0.01;
  Rounds steady(device, {1e-3});
  EXPECT_EQ(measure(steady, 1e-3).samples.size(), 5u);
  std::vector<double> wild;
  for (int i = 0; i < 200; ++i) wild.push_back(i % 2 == 0 ? 1e-3 : 3e-3);
  Rounds rounds(device, wild);
  const auto result = measure(rounds, 2e-3);
  EXPECT_EQ(result.samples.size(), 40u);
  EXPECT_FALSE(result.converged);
  options.max_repeats = 1;
  options.min_repeats = 1;
  Rounds two(device, wild);
  EXPECT_EQ(measure(two, 2e-3).samples.size(), 2u) << "one sample has no interval";
}

TEST_F(Timing, EndsWithItsTime) {
  options.min_repeats = 7;
  options.max_repeats = 1000;
  options.max_seconds = 1;
  std::vector<double> wild;
  for (int i = 0; i < 2000; ++i) wild.push_back(i % 2 == 0 ? 0.01 : 0.03);
  Rounds rounds(device, wild);
  const auto result = measure(rounds, 0.02);
  EXPECT_GE(result.samples.size(), 50u);
  EXPECT_LE(result.samples.size(), 53u) << "20 ms each, a second in all";
  Rounds slow(device, {0.5});
  EXPECT_EQ(measure(slow, 0.5).samples.size(), 3u) << "a first look at what is slow";
}

TEST_F(Timing, GivesUpWhatLosesForSure) {
  options.min_repeats = 10;
  std::vector<double> wild;
  for (int i = 0; i < 200; ++i) wild.push_back(i % 2 == 0 ? 1e-3 : 3e-3);
  Rounds rounds(device, wild);
  const auto result = measure(rounds, 2e-3, 1e-4);
  EXPECT_TRUE(result.gave_up);
  EXPECT_EQ(result.samples.size(), 10u);
  Rounds close(device, wild);
  EXPECT_FALSE(measure(close, 2e-3, 1.99e-3).gave_up);
}

TEST_F(Timing, AFlushIsTwiceTheCacheAtLeast32MiB) {
  Timer timer(device, options);
  const auto before = device.memory;
  timer.flush();
  EXPECT_EQ(before - device.memory, 32u << 20);
  timer.flush();
  EXPECT_EQ(before - device.memory, 32u << 20) << "one buffer serves";
  device.device_info.properties["device.l2_bytes"] = Value(50 << 20);
  Timer other(device, options);
  const auto then = device.memory;
  other.flush();
  EXPECT_EQ(then - device.memory, 100u << 20);
}

}  // namespace
}  // namespace ergotune
