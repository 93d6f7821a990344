// The clocks of CPUs whose policies differ, of kernels of before, and what is read back of them; and the files that all
// controls below /sys share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fakes/control_trees/control_trees.hpp"
#include "power/controls/control.hpp"
#include "power/controls/control_sysfs.hpp"
#include "power/effective_user.hpp"
#include "power/sensors/sensor.hpp"

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

}  // namespace
}  // namespace ergotune
