// Tegra, amdgpu, RAPL and pm_counters over trees with known physics (tests/fakes/sysfs_trees).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "power/sensors/sensor.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

constexpr std::size_t kEnough = 40;  // readings
constexpr double kPatience = 30;     // s, on a machine with other things to do
constexpr double kStep = 0.015;  // s of the curve's time between two updates of a tree, whatever time they take here

/// What a tree was told to show, the reading that followed, and the moments before and after it was taken.
struct Observed {
  double written, before, after;
  Reading reading;
};

/// Writes `value(i)` to the tree and reads the sensor, kEnough times. No step waits for a clock, and what is expected
/// of a reading follows from what was written: a busy machine changes nothing.
std::vector<Observed> observe(Sensor& sensor, const std::function<double(std::size_t)>& value,
                              const std::function<void(double)>& write) {
  std::vector<Observed> kept;
  for (std::size_t i = 0; i < kEnough; ++i) {
    std::vector<Reading> readings;
    write(value(i));
    const double before = host_seconds();
    EXPECT_EQ(sensor.read(readings), ReadStatus::ok) << sensor.last_error();
    const double after = host_seconds();
    for (const auto& reading : readings) kept.push_back({value(i), before, after, reading});
  }
  EXPECT_EQ(kept.size(), kEnough);
  return kept;
}

/// Every reading is what the tree showed, `step` (the unit of the files) off at most, and has the time at which it was
/// read.
void expect_true(const std::vector<Observed>& observed, double step) {
  for (const auto& [written, before, after, reading] : observed) {
    EXPECT_NEAR(reading.value, written, step);
    EXPECT_GE(reading.time, before);
    EXPECT_LE(reading.time, after);
  }
}

std::vector<std::string> ids_of(const std::string& family) {
  std::vector<std::string> ids;
  for (const auto& info : list_sensors())
    if (info.id.starts_with(family + ":")) ids.push_back(info.id);
  return ids;
}

std::string refusal(const std::string& id) {
  return error_of([&] { open_sensor(id); });
}

// Tegra
// ---------------------------------------------------------------------------------------------------------

TEST(Tegra, RailsOfTheHwmonLayoutWithTheGpuFirst) {
  OrinTree orin;
  EXPECT_THAT(ids_of("tegra"), testing::ElementsAre("tegra:VDD_GPU_SOC", "tegra:VDD_CPU_CV", "tegra:VIN_SYS_5V0"));
  EXPECT_EQ(open_sensor("tegra")->info().id, "tegra:VDD_GPU_SOC");
  EXPECT_NEAR(open_sensor("tegra")->info().update_period, 1e-3, 1e-9);
  EXPECT_THAT(refusal("tegra:VDD_GPU"), HasSubstr("VDD_GPU_SOC"));
}

TEST(Tegra, RailsOfTheIioLayoutByAllTheirLabels) {
  XavierTree xavier;
  EXPECT_THAT(ids_of("tegra"), testing::ElementsAre("tegra:GPU", "tegra:CPU", "tegra:SOC"));
  std::vector<Reading> out;
  ASSERT_EQ(open_sensor("tegra:CPU")->read(out), ReadStatus::ok);
  EXPECT_NEAR(out.at(0).value, 6, 1e-9) << "0.5 A at 12 V, without a power file";
}

TEST(Tegra, HwmonPowerIsTrue) {
  OrinTree orin;
  const PowerCurve curve{15, 6, 0.3};
  const auto sensor = open_sensor("tegra:VDD_GPU_SOC");
  const auto power = [&](std::size_t i) { return curve.power(kStep * static_cast<double>(i)); };
  expect_true(observe(*sensor, power, [&](double watts) { orin.rail(1, watts); }), 0.5e-3 * 19.2);
}

TEST(Tegra, ARailThatIsOffIsAFailureNotZeroWatts) {
  OrinTree orin;
  const auto sensor = open_sensor("tegra:VDD_GPU_SOC");
  orin.rail(1, 0);
  std::vector<Reading> out;
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_TRUE(out.empty());
  EXPECT_THAT(sensor->last_error(), HasSubstr("VDD_GPU_SOC"));
  orin.remove(std::string(OrinTree::kChip) + "/hwmon/hwmon1/curr1_input");
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
}

TEST(Tegra, RailsAreFoundHoweverDeepTheDriverPutsThem) {
  SysfsTree tree;
  const std::string chip = "/sys/devices/platform/c240000.i2c/i2c-1/1-0040";
  tree.put(chip + "/of_node/channel@0/label", std::string("VDD_GPU_SOC\0", 12));
  tree.put(chip + "/hwmon/hwmon3/power/curr1_input", 500);
  tree.put(chip + "/hwmon/hwmon3/power/in1_input", 12000);
  std::filesystem::create_directory_symlink("..", tree.real(chip + "/hwmon/device"));  // as sysfs has it: a loop
  std::filesystem::create_directories(tree.real("/sys/bus/i2c/drivers/ina3221"));
  std::filesystem::create_directory_symlink(tree.real(chip), tree.real("/sys/bus/i2c/drivers/ina3221/1-0040"));
  EXPECT_THAT(ids_of("tegra"), testing::ElementsAre("tegra:VDD_GPU_SOC"));
  std::vector<Reading> out;
  ASSERT_EQ(open_sensor("tegra")->read(out), ReadStatus::ok);
  EXPECT_NEAR(out.at(0).value, 6, 1e-9);
}

TEST(Tegra, FoldersOfPowerAndTemperatureCanBeGiven) {
  OrinTree orin;
  orin.put("/opt/monitor/hwmon7/name", "ina3221");
  for (const char* file : {"in1_label", "in1_input", "curr1_input", "in2_label", "in2_input", "curr2_input"})
    std::filesystem::copy(orin.real(std::string(OrinTree::kChip) + "/hwmon/hwmon1/" + file),
                          orin.real("/opt/monitor/hwmon7/" + std::string(file)));
  orin.remove("/sys/bus");
  EXPECT_THAT(ids_of("tegra"), testing::IsEmpty());
  const auto watts = [](const std::string& id) {
    std::vector<Reading> out;
    return open_sensor(id)->read(out) == ReadStatus::ok ? out.at(0).value : 0;
  };
  EXPECT_NEAR(watts("tegra:/opt/monitor/"), 10, 0.02) << "the GPU's rail";
  EXPECT_NEAR(watts("tegra:/opt/monitor/hwmon7/VDD_CPU_CV"), 5, 0.02);
  const std::string id = open_sensor("tegra:/opt/monitor")->info().id;
  EXPECT_NEAR(watts(id), 10, 0.02) << id << ": an id opens what it names";
  EXPECT_THAT(refusal("tegra:/opt/monitor/hwmon7/VDD_CPU"), HasSubstr("VDD_CPU_CV"));
  EXPECT_THAT(refusal("tegra:/opt/nothing"), HasSubstr("/opt"));

  orin.put("/opt/zone/temp", 61000);
  setenv("ERGOTUNE_TEGRA_TEMPERATURE", "/opt/zone", 1);
  const auto monitor = monitor_for_device("GPU-1", "");
  unsetenv("ERGOTUNE_TEGRA_TEMPERATURE");
  ASSERT_NE(monitor, nullptr);
  EXPECT_NEAR(monitor->read().temperature_c.value_or(0), 61, 1e-9);
}

TEST(Tegra, DevicesGetTheirOwnRails) {
  OrinTree orin;
  const auto gpu = sensors_for_device("GPU-1", "", false);
  ASSERT_FALSE(gpu.empty());
  EXPECT_EQ(gpu[0]->info().id, "tegra:VDD_GPU_SOC");
  const auto cpu = sensors_for_device("", "", true);
  ASSERT_FALSE(cpu.empty());
  EXPECT_EQ(cpu[0]->info().id, "tegra:VDD_CPU_CV");
}

TEST(Tegra, TheMonitorReadsTheGpusClockAndTemperature) {
  OrinTree orin;
  const auto monitor = monitor_for_device("GPU-1", "");
  ASSERT_NE(monitor, nullptr);
  EXPECT_NEAR(monitor->read().core_clock_mhz.value_or(0), 1300.5, 1e-9);
  EXPECT_NEAR(monitor->read().temperature_c.value_or(0), 52.5, 1e-9);
  orin.put("/sys/class/thermal/thermal_zone1/temp", -256000);
  EXPECT_FALSE(monitor->read().temperature_c) << "a sleeping GPU has no temperature";
  EXPECT_EQ(monitor_for_device("", ""), nullptr) << "the CPU's monitor is not the GPU's";
}

// amdgpu
// --------------------------------------------------------------------------------------------------------

TEST(Amdgpu, CardsAreMetByPciAddress) {
  AmdgpuTree tree;
  EXPECT_THAT(ids_of("amdgpu"), testing::ElementsAre("amdgpu:card0", "amdgpu:card1"));
  const auto sensors = sensors_for_device("", "00000000:c3:00.0", false);
  ASSERT_EQ(sensors.size(), 1u);
  EXPECT_EQ(sensors[0]->info().id, "amdgpu:card1");
  std::vector<Reading> out;
  ASSERT_EQ(sensors[0]->read(out), ReadStatus::ok);
  EXPECT_NEAR(out.at(0).value, 90, 1e-9) << "newer cards have power1_input only";
  std::vector<std::string> notes;
  EXPECT_TRUE(sensors_for_device("", "00000000:99:00.0", false, &notes).empty());
  EXPECT_THAT(notes, testing::Contains(HasSubstr("amdgpu: no GPU at")));
}

TEST(Amdgpu, PowerIsTrue) {
  AmdgpuTree tree;
  const PowerCurve curve{200, 80, 0.3};
  const auto sensor = open_sensor("amdgpu:card0");
  const auto power = [&](std::size_t i) { return curve.power(kStep * static_cast<double>(i)); };
  expect_true(observe(*sensor, power, [&](double watts) { tree.power(watts); }), 0.5e-6);
}

TEST(Amdgpu, ASleepingCardIsAFailure) {
  AmdgpuTree tree;
  const auto sensor = open_sensor("amdgpu");
  tree.power(0);
  std::vector<Reading> out;
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_TRUE(out.empty());
}

TEST(Amdgpu, TheMonitorReadsTheGpu) {
  AmdgpuTree tree;
  const auto monitor = monitor_for_device("", "0000:03:00.0");
  ASSERT_NE(monitor, nullptr);
  const auto state = monitor->read();
  EXPECT_NEAR(state.core_clock_mhz.value_or(0), 2100, 1e-9);
  EXPECT_NEAR(state.memory_clock_mhz.value_or(0), 1000, 1e-9);
  EXPECT_NEAR(state.temperature_c.value_or(0), 61, 1e-9);
  EXPECT_NEAR(state.power_limit_w.value_or(0), 300, 1e-9);
  EXPECT_FALSE(state.core_voltage_v);
}

// RAPL
// ----------------------------------------------------------------------------------------------------------

TEST(Rapl, ZonesAndTheirSum) {
  RaplTree tree;
  EXPECT_THAT(ids_of("rapl"),
              testing::ElementsAre("rapl:packages", "rapl:package-0", "rapl:package-0/core", "rapl:package-0/dram",
                                   "rapl:package-1", "rapl:psys", "rapl:package-1/core"));
  EXPECT_EQ(sensors_for_device("", "", true).at(0)->info().id, "rapl:packages");
  EXPECT_TRUE(sensors_for_device("GPU-1", "", false).empty());
}

TEST(Rapl, EnergyIsTrueThroughAWrap) {
  RaplTree tree;
  const PowerCurve curve{100, 40, 0.3};
  const auto sensor = open_sensor("rapl:packages");
  const double first = RaplTree::kRange * 1e-6 - 20;  // J; the counter of the first package wraps 20 J later
  const auto observed = observe(
      *sensor, [&](std::size_t i) { return curve.energy(0, kStep * static_cast<double>(i)); },
      [&](double joules) {
        tree.energy("intel-rapl:0", first + 0.7 * joules);
        tree.energy("intel-rapl:1", 5 + 0.3 * joules);
      });
  ASSERT_GT(observed.back().written, 40) << "the test is about a wrap";
  const double origin = observed.front().reading.value;
  for (const auto& [written, before, after, reading] : observed) {
    EXPECT_NEAR(reading.value - origin, written, 4 * 61e-6);
    EXPECT_GE(reading.time, before);
    EXPECT_LE(reading.time, after);
  }
}

TEST(Rapl, AfterMoreThanARangesTimeTheEnergyIsNotKnown) {
  RaplTree tree;
  tree.put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", 1'000'000);
  const auto sensor = open_sensor("rapl:package-0");
  std::vector<Reading> out;
  sensor->read(out);
  usleep(5000);  // 1 J at 1000 W is gone in 1 ms
  out.clear();
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_TRUE(out.empty());
  EXPECT_THAT(sensor->last_error(), HasSubstr("wrapped"));
}

TEST(Rapl, ACounterThatGoesBackWithoutARangeIsAFailure) {
  RaplTree tree;
  tree.remove("/sys/class/powercap/intel-rapl:0/max_energy_range_uj");
  const auto sensor = open_sensor("rapl:package-0");
  std::vector<Reading> out;
  tree.energy("intel-rapl:0", 5);
  sensor->read(out);
  tree.energy("intel-rapl:0", 1);
  out.clear();
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_TRUE(out.empty());
}

TEST(Rapl, CountersThatOnlyRootReadsSaySo) {
  RaplTree tree;
  for (const char* zone :
       {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:1", "intel-rapl:1:0", "intel-rapl:10"})
    std::filesystem::permissions(tree.real(std::string("/sys/class/powercap/") + zone + "/energy_uj"),
                                 std::filesystem::perms::none);
  std::filesystem::permissions(tree.real("/"), std::filesystem::perms(0755));
  const bool root = geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (root) {  // who reads everything
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const std::string message = refusal("rapl:package-0");
  std::vector<std::string> notes;
  const auto sensors = sensors_for_device("", "", true, &notes);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(message, HasSubstr("root only"));
  EXPECT_THAT(message, HasSubstr("chmod a+r"));
  EXPECT_THAT(message, HasSubstr("/intel-rapl:0/energy_uj")) << "the first of them";
  EXPECT_TRUE(sensors.empty());
  EXPECT_THAT(notes, testing::Contains(HasSubstr("root only")));
}

// pm_counters
// ---------------------------------------------------------------------------------------------------

TEST(PmCounters, SensorsOfANode) {
  CrayTree tree(2, true);
  EXPECT_THAT(ids_of("pm_counters"),
              testing::ElementsAre("pm_counters:node", "pm_counters:accel0", "pm_counters:accel1", "pm_counters:cpu"));
  EXPECT_NEAR(open_sensor("pm_counters")->info().update_period, 0.1, 1e-9);
  EXPECT_EQ(sensors_for_device("", "", true).at(0)->info().id, "pm_counters:cpu");
  // two accelerators: which of them is this GPU cannot be known
  std::vector<std::string> notes;
  EXPECT_TRUE(sensors_for_device("GPU-1", "", false, &notes).empty());
  EXPECT_THAT(notes, testing::Contains(HasSubstr("--sensor pm_counters:accel0")));
}

TEST(PmCounters, EnergyWithoutATimeHasTheTimeOfItsRead) {
  CrayTree tree(1, false);
  const PowerCurve curve{400, 100, 0.3};
  const auto sensor = open_sensor("pm_counters:accel0");
  const auto energy = [&](std::size_t i) { return 1e6 + curve.energy(0, kStep * static_cast<double>(i)); };
  expect_true(observe(*sensor, energy, [&](double joules) { tree.scan(0, joules, 0); }), 0.5);
  std::vector<Reading> again;
  EXPECT_EQ(sensor->read(again), ReadStatus::no_new_data) << "without a new scan";
}

TEST(PmCounters, EnergyWithATimeWasCurrentThen) {
  CrayTree tree(1, true);
  const PowerCurve curve{400, 100, 0.3};
  const auto sensor = open_sensor("pm_counters:accel0");
  double scanned = 0;  // the host's time of the scan, or a little later
  std::vector<double> early;
  for (std::size_t i = 0; i < kEnough; ++i) {
    const double joules = 1e6 + curve.energy(0, kStep * static_cast<double>(i));
    const double before = host_seconds(), wall = wall_seconds();
    scanned = host_seconds();
    tree.scan(0, joules, wall);
    usleep(3000);  // a scan is older than its read
    std::vector<Reading> readings;
    ASSERT_EQ(sensor->read(readings), ReadStatus::ok) << sensor->last_error();
    ASSERT_EQ(readings.size(), 1u);
    EXPECT_NEAR(readings[0].value, joules, 0.5);
    EXPECT_LE(readings[0].time, scanned + 1e-5) << "when it was scanned, not when it was read";
    early.push_back(before - readings[0].time);
  }
  // a thread that is kept waiting between two clocks makes one time too early: not half of them
  std::nth_element(early.begin(), early.begin() + early.size() / 2, early.end());
  EXPECT_LT(early[early.size() / 2], 1e-3);
}

TEST(PmCounters, AReadAcrossTwoScansIsTakenAgain) {
  // While it is read, scans go on as fast as they can. Every scan has joules = microseconds of its stamp /
  // 1e6 * 1e4: a torn line or a line of another scan breaks that.
  CrayTree tree(1, true);
  const auto sensor = open_sensor("pm_counters:node");
  std::vector<Reading> readings;
  sensor->read(readings);
  readings.clear();  // the tree's first scan has no time
  const double origin = wall_seconds() - host_seconds();
  {
    Writer writer([&] {
      const double wall = wall_seconds();
      tree.scan((wall - origin) * 1e4, 0, wall);
      usleep(300);
    });
    for (const double end = host_seconds() + kPatience; readings.size() < kEnough && host_seconds() < end;) {
      sensor->read(readings);
      usleep(500);
    }
  }
  ASSERT_GE(readings.size(), kEnough);
  std::size_t apart = 0;
  for (const auto& reading : readings) apart += std::abs(reading.value / 1e4 - reading.time) > 2e-3;
  EXPECT_LT(apart, kEnough / 4) << "a thread that is kept waiting between two clocks is not many of them";
}

TEST(PmCounters, ACounterThatGoesBackwardsIsAFailure) {
  CrayTree tree(1, false);
  const auto sensor = open_sensor("pm_counters:node");
  std::vector<Reading> out;
  tree.scan(500, 0, 0);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  tree.scan(20, 0, 0);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("restarted"));
  EXPECT_EQ(out.size(), 1u);
}

}  // namespace
