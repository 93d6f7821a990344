// Which folders below /sys are boards, rails and counters, and which only look like it.
#include "power/sysfs_boards.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "ergotune/power/sensor.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "power/sysfs_sensor.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<SensorInfo> sensors_of(const std::string& family) {
  std::vector<SensorInfo> infos = list_sensors();
  std::erase_if(infos, [&](const SensorInfo& info) { return !info.id.starts_with(family + ":"); });
  return infos;
}
std::vector<std::string> ids_of(const std::string& family) {
  std::vector<std::string> ids;
  for (const SensorInfo& info : sensors_of(family)) ids.push_back(info.id);
  return ids;
}
double value_of(const std::string& id) {
  std::vector<Reading> out;
  return open_sensor(id)->read(out) == ReadStatus::ok ? out.at(0).value : -1;
}

TEST(DrmCards, AreCardsAndNoConnectorsOrNodes) {
  SysfsTree tree;
  const std::string drm = "/sys/class/drm/";
  tree.put(drm + "card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v00001002");
  tree.put(drm + "card0-DP-1/status", "connected");
  tree.put(drm + "renderD128/dev", "226:128");
  tree.put(drm + "version", "drm 1.1.0");
  tree.put("/sys/devices/0000:41:00.0/vendor", "0x1002");
  std::filesystem::create_directories(tree.real(drm + "card1"));
  std::filesystem::create_symlink(tree.real("/sys/devices/0000:41:00.0"), tree.real(drm + "card1/device"));
  tree.put(drm + "card2/device/uevent", "DRIVER=vgem");
  const auto cards = drm_cards(Sysfs::from_environment());
  std::vector<std::string> said;
  for (const auto& card : cards) said.push_back(card.name + " " + card.pci_address);
  EXPECT_THAT(said, ElementsAre("card0 00000000:03:00.0", "card1 00000000:41:00.0", "card2 "));
  ASSERT_NE(card_at(cards, "41:00.0"), nullptr);
  EXPECT_EQ(card_at(cards, "41:00.0")->name, "card1");
  EXPECT_EQ(card_at(cards, "42:00.0"), nullptr);
  EXPECT_EQ(card_at(cards, ""), nullptr) << "nobody's address is nobody's";
}

TEST(TegraBoards, AreKnownByTheirNameInTheDeviceTree) {
  SysfsTree tree;
  const Sysfs sysfs = Sysfs::from_environment();
  tree.put("/sys/class/devfreq/15340000.vic/device/of_node/name", std::string("vic\0", 4));
  EXPECT_EQ(tegra_devfreq(sysfs), "");
  tree.put("/sys/class/devfreq/gpu-gpc-0/cur_freq", "1");
  EXPECT_EQ(tegra_devfreq(sysfs), "/sys/class/devfreq/gpu-gpc-0");
  tree.put("/sys/class/devfreq/17000000.gp10b/device/of_node/name", std::string("gp10b\0\0", 7));
  EXPECT_EQ(tegra_devfreq(sysfs), "/sys/class/devfreq/17000000.gp10b");
  tree.put("/nothing", std::string("\0\0", 2));
  EXPECT_EQ(device_tree_text(sysfs, "/nothing"), "");
  EXPECT_EQ(device_tree_text(sysfs, "/missing"), "");
}

TEST(SensorsById, AreNamedWithTheReasonsWhereThereIsNone) {
  SensorInfo info;
  info.id = "x:a";
  const auto refusal = [](const std::vector<SensorInfo>& list, const std::vector<std::string>& notes) -> std::string {
    try {
      return choose_sensor("x:b", "x", list, notes).id;
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(choose_sensor("x:a", "x", {info}, {}).id, "x:a");
  EXPECT_EQ(choose_sensor("x", "x", {info}, {}).id, "x:a") << "the first of the family";
  EXPECT_EQ(refusal({}, {}), "there is no sensor \"x:b\" here");
  EXPECT_EQ(refusal({}, {"no file", "no right"}), "there is no sensor \"x:b\" here: no file; no right");
  EXPECT_THAT(refusal({info}, {"no file"}), testing::AllOf(HasSubstr("\"x:a\""), HasSubstr("; no file")));
}

// Jetsons
// -------------------------------------------------------------------------------------------------------

/// Rails of one monitor under hwmon, in the order of its channels.
struct RailTree : SysfsTree {
  static constexpr const char* kChip = "/sys/bus/i2c/drivers/ina3221/1-0040/";
  explicit RailTree(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) rail(static_cast<int>(i) + 1, names[i]);
  }
  void rail(int channel, const std::string& name) {
    const std::string folder = std::string(kChip) + "hwmon/hwmon1/", number = std::to_string(channel);
    put(folder + "in" + number + "_label", name);
    put(folder + "in" + number + "_input", 5000);
    put(folder + "curr" + number + "_input", 1000 * channel);
  }
};

TEST(TegraRails, HaveANameAndBothReadings) {
  RailTree tree({"NC", "", "VDD_GPU"});
  tree.rail(4, "SUM");
  tree.put("/sys/bus/i2c/drivers/ina3221/module/hwmon/hwmon1/in1_label", "VDD_BOGUS");
  tree.put("/sys/bus/i2c/drivers/ina3221/module/hwmon/hwmon1/in1_input", 5000);
  tree.put("/sys/bus/i2c/drivers/ina3221/module/hwmon/hwmon1/curr1_input", 5000);
  EXPECT_THAT(ids_of("tegra"), ElementsAre("tegra:VDD_GPU")) << "not what is not connected, unnamed, or a sum of them";
  EXPECT_EQ(open_sensor("tegra:VDD_GPU")->info().update_period, 0) << "the driver does not tell";
  EXPECT_EQ(value_of("tegra:VDD_GPU"), 15);
  tree.put(std::string(RailTree::kChip) + "of_node/channel@1/label", std::string("VDD_CPU\0", 8));
  tree.put(std::string(RailTree::kChip) + "hwmon/hwmon1/update_interval", 0);
  EXPECT_THAT(ids_of("tegra"), ElementsAre("tegra:VDD_GPU", "tegra:VDD_CPU")) << "the device tree names it";
  EXPECT_EQ(open_sensor("tegra:VDD_CPU")->info().update_period, 0);
  for (const char* reading : {"curr2_input", "in2_input"}) {
    RailTree other({"VDD_GPU", "VDD_CPU"});
    const auto sensor = open_sensor("tegra:VDD_CPU");
    other.remove(std::string(RailTree::kChip) + "hwmon/hwmon1/" + reading);
    EXPECT_THAT(ids_of("tegra"), ElementsAre("tegra:VDD_GPU")) << reading;
    std::vector<Reading> out;
    EXPECT_EQ(sensor->read(out), ReadStatus::failed) << reading;
  }
}

TEST(TegraRails, TheGpusComesFirstThenTheModules) {
  const RailTree tree({"VDD_CPU_CV", "VDD_CPU_GPU_CV_SOC_IN", "VDD_GPU"});
  EXPECT_THAT(ids_of("tegra"), ElementsAre("tegra:VDD_GPU", "tegra:VDD_CPU_GPU_CV_SOC_IN", "tegra:VDD_CPU_CV"));
  const auto of = [](bool cpu) {
    std::vector<std::string> ids;
    for (const auto& sensor : sensors_for_device(cpu ? "" : "GPU-1", "", cpu)) ids.push_back(sensor->info().id);
    return ids;
  };
  EXPECT_THAT(of(false), ElementsAre("tegra:VDD_GPU", "tegra:VDD_CPU_GPU_CV_SOC_IN"));
  EXPECT_THAT(of(true), ElementsAre("tegra:VDD_CPU_GPU_CV_SOC_IN", "tegra:VDD_CPU_CV"));
  const RailTree other({"VDD_IN", "VDD_SOC", "VDD_GPU"});
  EXPECT_THAT(of(false), ElementsAre("tegra:VDD_GPU", "tegra:VDD_IN"));
  EXPECT_THAT(of(true), ElementsAre("tegra:VDD_IN"));
}

TEST(TegraRails, TheSupplyOfTheModuleHasManyNames) {
  for (const char* name : {"VDD_IN", "POM_5V_IN", "VIN", "VDD_CPU_GPU_CV_SOC_IN", "VIN_SYS_5V0"}) {
    const RailTree tree({name});
    const bool module = std::string(name) != "VIN_SYS_5V0";
    EXPECT_EQ(sensors_of("tegra").at(0).scope, module ? SensorScope::module : SensorScope::rail) << name;
  }
}

TEST(TegraRails, OfTheOlderDriverHavePowerOrBothOfItsParts) {
  XavierTree tree;
  const std::string chip = std::string(XavierTree::kChip) + "/", device = chip + "iio:device0/";
  EXPECT_EQ(sensors_of("tegra").at(0).unit_step, 1e-3);
  EXPECT_EQ(sensors_of("tegra").at(1).unit_step, 0) << "a product of two";
  EXPECT_EQ(sensors_of("tegra").at(0).update_period, 0) << "the driver does not tell";
  tree.power(0, 0.5);
  EXPECT_EQ(value_of("tegra:GPU"), 0.5);
  tree.put(device + "rail_name_3", "SUM");
  tree.power(3, 5);
  tree.put(chip + "iio:trigger0/rail_name_0", "TRIGGER");
  tree.put(chip + "iio:trigger0/in_power0_input", 5);
  tree.put(chip + "power_device0/rail_name_0", "OTHER");
  tree.put(chip + "power_device0/in_power0_input", 5);
  EXPECT_THAT(ids_of("tegra"), ElementsAre("tegra:GPU", "tegra:CPU", "tegra:SOC"));
  const auto sensor = open_sensor("tegra:GPU");
  tree.put(device + "rail_name_2", "NC");
  tree.remove(device + "in_current1_input");
  tree.remove(device + "in_power0_input");
  EXPECT_THAT(ids_of("tegra"), ElementsAre());
  std::vector<Reading> out;
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("cannot be read"));
}

TEST(TegraBoards, TheMonitorFindsEitherDriversThermalZone) {
  XavierTree tree;
  EXPECT_NEAR(monitor_for_device("GPU-1", "")->read().temperature_c.value_or(0), 47, 1e-9);
  tree.put("/sys/class/thermal/thermal_zone3/temp", -40000);
  EXPECT_EQ(monitor_for_control("tegra")->read().temperature_c, -40);
  tree.put("/sys/class/devfreq/17000000.gv11b/cur_freq", 0);
  EXPECT_FALSE(monitor_for_control("tegra")->read().core_clock_mhz);
  tree.put("/sys/class/devfreq/17000000.gv11b/cur_freq", 1);
  EXPECT_NEAR(monitor_for_control("tegra")->read().core_clock_mhz.value_or(0), 1e-6, 1e-12);
  tree.put("/sys/class/thermal/thermal_zone3/temp", -99999);
  EXPECT_TRUE(monitor_for_control("tegra")->read().temperature_c);
  tree.put("/sys/class/thermal/thermal_zone3/temp", -100000);
  EXPECT_FALSE(monitor_for_control("tegra")->read().temperature_c);
  tree.remove("/sys/class/thermal");
  EXPECT_FALSE(monitor_for_control("tegra")->read().temperature_c);
  tree.remove("/sys/class/devfreq");
  EXPECT_EQ(monitor_for_control("tegra"), nullptr);
}

// amdgpu
// -------------------------------------------------------------------------------------------------------

TEST(AmdgpuCards, HaveAPowerOfTheDriversOwn) {
  AmdgpuTree tree;
  tree.put("/sys/class/drm/card2/device/uevent", "DRIVER=amdgpu");
  tree.put("/sys/class/drm/card2/device/hwmon/hwmon9/name", "nvme");
  tree.put("/sys/class/drm/card2/device/hwmon/hwmon9/power1_input", 5000000);
  EXPECT_THAT(ids_of("amdgpu"), ElementsAre("amdgpu:card0", "amdgpu:card1"));
  const auto infos = sensors_of("amdgpu");
  EXPECT_EQ(infos.at(0).kind, SensorKind::windowed_power);
  EXPECT_EQ(infos.at(1).kind, SensorKind::instantaneous_power);
  EXPECT_EQ(infos.at(1).window, 0) << "it is no average";
  EXPECT_EQ(infos.at(1).unit_step, 1e-6);
  tree.put("/sys/class/drm/card2/device/hwmon/hwmon9/name", "amdgpu");
  std::vector<std::string> notes;
  EXPECT_TRUE(sensors_for_device("", "", false, &notes).empty()) << "a board of no address is not everybody's";
  EXPECT_EQ(monitor_for_device("", ""), nullptr);
  for (const auto& note : notes) EXPECT_EQ(note.find("no card at"), std::string::npos) << note;
  EXPECT_EQ(value_of("amdgpu:card2"), 5);
  tree.power(1e-6);
  EXPECT_NEAR(value_of("amdgpu:card0"), 1e-6, 1e-12);
  SysfsTree empty;
  notes.clear();
  EXPECT_TRUE(sensors_for_device("", "0000:03:00.0", false, &notes).empty());
  EXPECT_THAT(notes, testing::Contains(HasSubstr("no card with a power or energy reading")));
  EXPECT_THAT(notes, testing::Not(testing::Contains(HasSubstr("no card at"))));
}

TEST(AmdgpuCards, TheMonitorIsFoundByItsControl) {
  AmdgpuTree tree;
  const std::string hwmon = "/sys/class/drm/card1/device/hwmon/hwmon4/";
  tree.put(hwmon + "temp1_input", 70000);
  tree.put(hwmon + "in0_input", 850);
  tree.put(hwmon + "freq1_input", 0);
  const auto state = monitor_for_control("amdgpu:card1")->read();
  EXPECT_EQ(state.temperature_c, 70);
  EXPECT_NEAR(state.core_voltage_v.value_or(0), 0.85, 1e-12);
  EXPECT_FALSE(state.core_clock_mhz) << "no clock is 0";
  tree.put(hwmon + "freq1_input", 1);
  EXPECT_NEAR(monitor_for_control("amdgpu:card1")->read().core_clock_mhz.value_or(0), 1e-6, 1e-12);
  EXPECT_NEAR(state.power_w.value_or(0), 90, 1e-9);
  EXPECT_EQ(monitor_for_control("amdgpu")->read().temperature_c, 61) << "the first";
  EXPECT_EQ(monitor_for_control("amdgpu:card7"), nullptr);
  EXPECT_EQ(monitor_for_device("", "0000:99:00.0"), nullptr);
}

// RAPL and pm_counters
// -------------------------------------------------------------------------------------------------------

TEST(RaplZones, OfOnePackageHaveNoSum) {
  RaplTree tree;
  EXPECT_NEAR(open_sensor("rapl:psys")->info().unit_step, 0x1p-14, 1e-6);
  EXPECT_EQ(open_sensor("rapl:psys")->info().update_period, 1e-3);
  tree.remove("/sys/class/powercap/intel-rapl:1");
  tree.remove("/sys/class/powercap/intel-rapl:0:1/name");
  tree.remove("/sys/class/powercap/intel-rapl:0:0/energy_uj");
  EXPECT_THAT(ids_of("rapl"), ElementsAre("rapl:package-0", "rapl:psys", "rapl:package/core"));
}

TEST(RaplZones, ReadWithoutARangeAndFromNothingOn) {
  RaplTree tree;
  tree.remove("/sys/class/powercap/intel-rapl:0/max_energy_range_uj");
  const auto sensor = open_sensor("rapl:package-0");
  std::vector<Reading> out;
  EXPECT_EQ(sensor->read(out), ReadStatus::ok) << "0 J is a reading";
  EXPECT_EQ(out.at(0).value, 0) << "it begins where the sensor does";
  tree.energy("intel-rapl:0", 3);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_NEAR(out.at(1).value - out.at(0).value, 3, 1e-3);
  tree.energy("intel-rapl:0", 1);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  tree.energy("intel-rapl:0", 2);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok) << "it counts on from there";
  EXPECT_NEAR(out.at(2).value - out.at(1).value, 1, 1e-3);
  tree.put("/sys/class/powercap/intel-rapl:0/energy_uj", -5);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("gives no number"));
}

TEST(PmCountersFiles, SayWhatTheyCover) {
  CrayTree tree(1, true);
  const auto infos = sensors_of("pm_counters");
  ASSERT_EQ(infos.size(), 3u);
  EXPECT_EQ(infos[0].scope, SensorScope::node);
  EXPECT_EQ(infos[1].scope, SensorScope::module);
  EXPECT_EQ(infos[2].scope, SensorScope::package);
  EXPECT_EQ(infos[0].unit_step, 1);
  EXPECT_EQ(sensors_for_device("GPU-1", "", false).at(0)->info().id, "pm_counters:accel0") << "there is only one";
  for (const char* hertz : {"0", "none"}) {
    tree.put("/sys/cray/pm_counters/raw_scan_hz", hertz);
    EXPECT_EQ(sensors_of("pm_counters").at(0).update_period, 0.1);
  }
  tree.put("/sys/cray/pm_counters/raw_scan_hz", "20");
  EXPECT_EQ(sensors_of("pm_counters").at(0).update_period, 0.05);
  tree.put("/sys/cray/pm_counters/raw_scan_hz", "1");
  EXPECT_EQ(sensors_of("pm_counters").at(0).update_period, 1);
  std::vector<std::string> notes;
  sensors_for_device("GPU-1", "", false, &notes);
  EXPECT_THAT(notes, testing::Not(testing::Contains(HasSubstr("nothing ties to a device")))) << "one is this device's";
  tree.remove("/sys/cray/pm_counters/cpu_energy");
  EXPECT_TRUE(sensors_for_device("", "", true).empty());
}

TEST(PmCountersFiles, AScanIsPlacedByItsStampWhereThatIsOfThisClock) {
  CrayTree tree(1, true);
  const auto sensor = open_sensor("pm_counters:node");
  double joules = 100;
  const auto seconds_ago = [&](double age) {
    tree.scan(++joules, 0, wall_seconds() - age);
    std::vector<Reading> out;
    EXPECT_EQ(sensor->read(out), ReadStatus::ok) << sensor->last_error();
    return host_seconds() - out.at(0).time;
  };
  const double past = seconds_ago(0.3);
  EXPECT_GE(past, 0.29);
  EXPECT_LT(past, 60);
  EXPECT_LT(seconds_ago(1.5), 1.4) << "another clock";
  const double to_come = seconds_ago(-0.5);
  EXPECT_GE(to_come, 0);
  EXPECT_LT(to_come, 60);
}

TEST(PmCountersFiles, AScanThatBringsNothingIsNoneWhereScansAreNotCounted) {
  CrayTree tree(1, false);
  const auto sensor = open_sensor("pm_counters:node");
  std::vector<Reading> out;
  tree.scan(50, 0, 0);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_EQ(sensor->read(out), ReadStatus::no_new_data) << "the same scan";
  tree.scan(50, 0, 0);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok) << "a scan of its own, though nothing was drawn";
  tree.remove("/sys/cray/pm_counters/freshness");
  EXPECT_EQ(sensor->read(out), ReadStatus::no_new_data);
  tree.line("energy", 51, "J", 0);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_EQ(out.back().value, 51);
  for (const char* wrong : {"52 W", "52", ""}) {
    tree.put("/sys/cray/pm_counters/energy", wrong);
    EXPECT_EQ(sensor->read(out), ReadStatus::failed) << wrong;
  }
  tree.put("/sys/cray/pm_counters/energy", "52 J 5 parsecs");
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_NEAR(out.back().time, host_seconds(), 60);
  const double before = host_seconds();
  tree.put("/sys/cray/pm_counters/energy", fmt::format("53 J {:.0f} parsecs", (wall_seconds() - 0.5) * 1e6));
  EXPECT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_GE(out.back().time, before) << "no time of anybody's";
  tree.remove("/sys/cray/pm_counters/energy");
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
}

}  // namespace
