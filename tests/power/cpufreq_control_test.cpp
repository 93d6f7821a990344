// The clocks of CPUs whose policies differ, of kernels of before, and what is read back of them; and the files that all controls
// below /sys share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ergotune/power/control.hpp"
#include "ergotune/power/sensor.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/control_sysfs.hpp"
#include "power/effective_user.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

struct CpuClocks : ::testing::Test {
  control_trees::Tree tree;
  ControlEnvironment environment;
  const std::string policies = "/sys/devices/system/cpu/cpufreq/";
  void SetUp() override {
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
  }
  std::unique_ptr<Control> open(bool listed = true) const {
    control_trees::add_cpufreq(tree, listed);
    return open_control("cpufreq", environment);
  }
  ControlRange range() const { return open_control("cpufreq", environment)->range(kCore); }
  void put(const std::string& file, const std::string& text) const { tree.put(policies + file, text); }
};

TEST_F(CpuClocks, UnlikeCoresKeepWhatTheyShare) {
  open();
  put("policy4/cpuinfo_min_freq", "1000000");
  put("policy4/cpuinfo_max_freq", "2500000");
  put("policy4/scaling_available_frequencies", "2400000 2000000 1400000");
  EXPECT_THAT(range().values, ElementsAre(1400, 2000));
  EXPECT_EQ(range().low, 1000);
  EXPECT_EQ(range().high, 2500);
  EXPECT_EQ(range().default_value, 2500);
  put("policy4/cpuinfo_min_freq", "3600000");
  put("policy4/cpuinfo_max_freq", "4000000");
  EXPECT_TRUE(range().supported) << "one clock";
  put("policy4/cpuinfo_min_freq", "3700000");
  EXPECT_FALSE(range().supported) << "none";
}

TEST_F(CpuClocks, APolicyNeedsEachOfItsFiles) {
  for (const char* file : {"/cpuinfo_min_freq", "/cpuinfo_max_freq", "/scaling_min_freq"}) {
    open();
    for (const char* policy : {"policy0", "policy4"}) std::filesystem::remove(tree.real(policies + policy + file));
    EXPECT_THAT(list_controls(environment), ElementsAre()) << file;
  }
}

TEST_F(CpuClocks, PoliciesWithoutBoundsAreNone) {
  open();
  put("policy0/cpuinfo_min_freq", "4000000");  // above the highest
  put("policy4/cpuinfo_max_freq", "2500000");
  EXPECT_EQ(range().high, 2500);
  std::filesystem::remove(tree.real(policies + "policy4/scaling_min_freq"));
  EXPECT_THAT(list_controls(environment), ElementsAre());
  put("policy0/cpuinfo_min_freq", "3600000");
  EXPECT_EQ(range().low, 3600) << "a clock that is fixed is a clock";
}

TEST_F(CpuClocks, OldKernelsHaveAFolderForEachCpu) {
  for (const char* cpu : {"cpu0", "cpu1"}) {
    const std::string folder = std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/";
    tree.put(folder + "cpuinfo_min_freq", "800000");
    tree.put(folder + "cpuinfo_max_freq", "2000000");
    tree.put(folder + "scaling_min_freq", "800000");
    tree.put(folder + "scaling_max_freq", "2000000");
  }
  tree.put("/sys/devices/system/cpu/cpu2/online", "0");
  tree.put("/sys/devices/system/cpu/power/cpufreq/scaling_min_freq", "1");
  auto control = open_control("cpufreq", environment);
  EXPECT_EQ(control->snapshot().size(), 2u);
  ASSERT_TRUE(control->set(kCore, 1500).ok());
  EXPECT_EQ(tree.get("/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"), "1500000");
}

TEST_F(CpuClocks, TheClockOfNowIsToldWhereItIsPinned) {
  auto control = open();
  EXPECT_FALSE(range().current);
  ASSERT_TRUE(control->set(kCore, 2000).ok());
  EXPECT_EQ(range().current, 2000);
  std::filesystem::remove(tree.real(policies + "policy0/scaling_max_freq"));
  EXPECT_FALSE(range().current);
  EXPECT_FALSE(control->range(ControlQuantity::power_limit_w).supported);
}

TEST_F(CpuClocks, AGovernorThatIsNotOfferedIsNotChosen) {
  auto control = open();
  put("policy0/scaling_available_governors", "schedutil powersave");
  put("policy4/scaling_governor", "performance");
  std::filesystem::remove(tree.real(policies + "policy4/scaling_available_governors"));
  ASSERT_TRUE(control->set(kCore, 2000).ok());
  EXPECT_EQ(tree.get(policies + "policy0/scaling_governor"), "powersave");
  EXPECT_EQ(tree.get(policies + "policy4/scaling_governor"), "performance");
  std::filesystem::remove(tree.real(policies + "policy0/scaling_governor"));
  EXPECT_TRUE(control->set(kCore, 1400).ok());
  EXPECT_FALSE(std::filesystem::exists(tree.real(policies + "policy0/scaling_governor")));
}

TEST_F(CpuClocks, APolicyThatRefusesIsSaid) {
  auto control = open();
  const auto gate = tree.real(policies + "policy0/scaling_max_freq");
  std::filesystem::remove(gate);
  std::filesystem::create_directory(gate);
  EXPECT_FALSE(control->set(kCore, 2000).ok());
  EXPECT_EQ(tree.get(policies + "policy4/scaling_max_freq"), "2000000") << "the others are set";
  std::filesystem::remove(gate);
  put("policy0/scaling_max_freq", "2000000");
  std::filesystem::remove(tree.real(policies + "policy0/scaling_governor"));
  std::filesystem::create_directory(tree.real(policies + "policy0/scaling_governor"));
  put("policy4/scaling_governor", "powersave");
  EXPECT_TRUE(control->set(kCore, 1400).ok()) << "a governor that cannot be read is left alone";
}

TEST_F(CpuClocks, AreReadBack) {
  auto control = open();
  ASSERT_TRUE(control->set(kCore, 2000).ok());
  EXPECT_TRUE(control->check(kCore, 2000).ok());
  put("policy4/scaling_min_freq", "2000500");
  EXPECT_TRUE(control->check(kCore, 2000).ok()) << "rounded";
  put("policy4/scaling_min_freq", "1999000");
  EXPECT_THAT(control->check(kCore, 2000).message, HasSubstr("but it is 1999 MHz"));
  put("policy4/scaling_min_freq", "2000000");
  put("policy0/scaling_max_freq", "2001000");
  EXPECT_THAT(control->check(kCore, 2000).message, HasSubstr("but it is 2001 MHz"));
  EXPECT_TRUE(control->check(ControlQuantity::memory_clock_mhz, 2000).ok()) << "nothing of this control";
  std::filesystem::remove(tree.real(policies + "policy0/scaling_max_freq"));
  EXPECT_TRUE(control->check(kCore, 2000).ok()) << "nobody can tell";
}

TEST_F(CpuClocks, WithoutAListAreReadBackToAStepOfTheHardware) {
  std::filesystem::remove_all(tree.real(policies));
  auto control = open(false);
  ASSERT_TRUE(control->set(kCore, 2050).ok());
  put("policy4/scaling_max_freq", "2100000");
  EXPECT_TRUE(control->check(kCore, 2050).ok());
  put("policy4/scaling_max_freq", "2102000");
  EXPECT_FALSE(control->check(kCore, 2050).ok());
}

TEST_F(CpuClocks, AreForWhoMayWriteThem) {
  auto control = open();
  EXPECT_TRUE(control->permitted());
  const auto file = tree.real(policies + "policy4/scaling_max_freq");
  std::filesystem::permissions(tree.root(), std::filesystem::perms(0755));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.root()))
    if (entry.is_regular_file()) std::filesystem::permissions(entry.path(), std::filesystem::perms(0666));
  std::filesystem::permissions(file, std::filesystem::perms(0444));
  const EffectiveUser nobody;
  EXPECT_FALSE(control->permitted());
  EXPECT_EQ(control->set(kCore, 2000).status, ControlStatus::no_permission);
}

TEST_F(CpuClocks, TheMonitorTellsTheFastestCore) {
  open();
  setenv("ERGOTUNE_SYSFS_ROOT", tree.root().c_str(), 1);
  const auto monitor = monitor_for_control("cpufreq");
  ASSERT_NE(monitor, nullptr);
  EXPECT_FALSE(monitor->read().core_clock_mhz);
  put("policy0/scaling_cur_freq", "2500000");
  put("policy4/scaling_cur_freq", "0");
  EXPECT_NEAR(monitor->read().core_clock_mhz.value_or(0), 2500, 1e-9);
  put("policy0/scaling_cur_freq", "0");
  EXPECT_FALSE(monitor->read().core_clock_mhz) << "no clock is 0";
  put("policy0/scaling_cur_freq", "1");
  EXPECT_NEAR(monitor->read().core_clock_mhz.value_or(0), 1e-3, 1e-9);
  put("policy4/scaling_cur_freq", "3100000");
  EXPECT_NEAR(monitor->read().core_clock_mhz.value_or(0), 3100, 1e-9);
  EXPECT_EQ(monitor_for_control("cpufreq:0"), nullptr);
  std::filesystem::remove_all(tree.real(policies));
  EXPECT_EQ(monitor_for_control("cpufreq"), nullptr);
  unsetenv("ERGOTUNE_SYSFS_ROOT");
}

struct SysfsFiles : ::testing::Test {
  control_trees::Tree tree;
  const Sysfs sysfs{tree.root()};
  const FrequencyFiles files{"/f/min", "/f/max"};
  void put(const std::string& low, const std::string& high) const {
    tree.put("/f/min", low);
    tree.put("/f/max", high);
  }
};

// With one file in the place of both, what it says at the end was written last.
TEST_F(SysfsFiles, AreWrittenInTheOrderThatKeepsMinBelowMax) {
  tree.put("/f/both", "200");
  const FrequencyFiles both{"/f/both", "/f/both"};
  ASSERT_TRUE(write_range(sysfs, both, 300, 400).ok());
  EXPECT_EQ(tree.get("/f/both"), "300") << "raised: the upper bound first";
  ASSERT_TRUE(write_range(sysfs, both, 50, 100).ok());
  EXPECT_EQ(tree.get("/f/both"), "100") << "lowered: the lower bound first";
}

TEST_F(SysfsFiles, ARangeIsRestoredWhereItDiffers) {
  for (const auto& [low, high] : {std::pair{"100", "250"}, std::pair{"150", "200"}}) {
    put(low, high);
    EXPECT_TRUE(restore_range(sysfs, files, "100 200").ok());
    EXPECT_EQ(tree.get("/f/min") + " " + tree.get("/f/max"), "100 200");
  }
  EXPECT_TRUE(restore_range(sysfs, files, "0 0").ok());
  EXPECT_EQ(tree.get("/f/max"), "0");
  for (const char* bad : {"", "5", "x y", "-1 5", "5 4"})
    EXPECT_EQ(restore_range(sysfs, files, bad).status, ControlStatus::invalid_value) << bad;
  std::filesystem::remove(tree.real("/f/max"));
  std::filesystem::create_symlink("/dev/null", tree.real("/f/max"));  // takes what is written, and keeps nothing
  EXPECT_EQ(restore_range(sysfs, files, "100 200").status, ControlStatus::failed);
}

TEST_F(SysfsFiles, WhatCannotBeReadIsNotKept) {
  std::vector<RestoreStep> steps;
  tree.put("/f/min", "100");
  snapshot_range(sysfs, files, steps);
  EXPECT_TRUE(steps.empty());
  put("100", "200");
  snapshot_range(sysfs, files, steps);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].value, "100 200");
  EXPECT_EQ(steps[0].target, "/f/min");
}

TEST_F(SysfsFiles, ATextIsRestoredAndVerified) {
  tree.put("/f/text", "auto");
  EXPECT_TRUE(restore_text(sysfs, "/f/text", "manual").ok());
  EXPECT_EQ(tree.get("/f/text"), "manual");
  std::filesystem::create_symlink("/dev/null", tree.real("/f/deaf"));
  EXPECT_EQ(restore_text(sysfs, "/f/deaf", "manual").status, ControlStatus::failed);
  EXPECT_EQ(restore_text(sysfs, "/f/missing", "manual").status, ControlStatus::not_supported);
}

}  // namespace
}  // namespace ergotune
