// The amdgpu control at its edges: which boards have a ceiling, what a cap must be, what is still set, what a step may write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/power/control.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/control_sysfs.hpp"

namespace ergotune {
namespace {

using control_trees::kAmdCard;
using control_trees::kInstinctCard;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr auto kCore = ControlQuantity::core_clock_mhz;
constexpr auto kMemory = ControlQuantity::memory_clock_mhz;
constexpr auto kPower = ControlQuantity::power_limit_w;

struct AmdgpuControls : ::testing::Test {
  control_trees::Tree tree;
  ControlEnvironment environment;
  const std::string card = kAmdCard, instinct = kInstinctCard;
  const std::string level = "/power_dpm_force_performance_level", cap = "/hwmon/hwmon3/power1_cap";
  void SetUp() override {
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
    control_trees::add_amdgpu(tree);
    control_trees::add_instinct(tree);
  }
  std::unique_ptr<Control> open(const std::string& id = "amdgpu:card0") const { return open_control(id, environment); }
  void remove(const std::string& path) const { std::filesystem::remove_all(tree.real(path)); }
  /// Ceilings that are journalled.
  static std::vector<std::string> ceilings(Control& control) {
    std::vector<std::string> values;
    for (const auto& step : control.snapshot())
      if (step.kind == "amdgpu-ceiling") values.push_back(step.value);
    return values;
  }
};

TEST_F(AmdgpuControls, BoardsFromTheMi200OnHaveACeiling) {
  const auto takes_any_clock = [&](const std::string& line) {
    tree.put(instinct + "/uevent", "DRIVER=amdgpu\n" + line + "\nPCI_SLOT_NAME=0000:c9:00.0");
    return open("amdgpu:card1")->range(kCore).values.size() > 3;
  };
  for (const char* number : {"7408", "740F", "740c", "74a0", "74a1", "74BF"})
    EXPECT_TRUE(takes_any_clock(std::string("PCI_ID=1002:") + number)) << number;
  for (const char* number : {"7407", "7410", "749f", "74c0", "", "card"})
    EXPECT_FALSE(takes_any_clock(std::string("PCI_ID=1002:") + number)) << number;
  EXPECT_FALSE(takes_any_clock("PCI_ID=10DE:7408")) << "somebody else's";
}

TEST_F(AmdgpuControls, ACeilingNeedsItsFileAndLevels) {
  const auto before = open("amdgpu:card1")->range(kCore);
  EXPECT_EQ(before.values.at(1), 550) << "every 50 MHz";
  EXPECT_EQ(before.default_value, 1700);
  EXPECT_FALSE(before.current) << "no ceiling holds outside its performance level";
  remove(instinct + "/pp_od_clk_voltage");
  EXPECT_THAT(open("amdgpu:card1")->range(kCore).values, ElementsAre(500, 800, 1700));
  control_trees::add_instinct(tree);
  remove(instinct + "/pp_dpm_sclk");
  EXPECT_FALSE(open("amdgpu:card1")->range(kCore).supported);
  tree.put(card + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: 1700Mhz");
  EXPECT_EQ(open()->range(kCore).values.size(), 4u) << "a board of another kind";
}

TEST_F(AmdgpuControls, ALevelHasAClock) {
  tree.put(card + "/pp_dpm_sclk", "0: 0Mhz\n1: 800Mhz *\nrubbish\n2: 1200Mhz\n3: 1200Mhz");
  auto control = open();
  EXPECT_THAT(control->range(kCore).values, ElementsAre(800, 1200));
  EXPECT_EQ(control->range(kCore).low, 800);
  EXPECT_EQ(control->range(kCore).high, 1200);
  EXPECT_EQ(control->range(kCore).default_value, 1200);
  EXPECT_EQ(control->core_clocks_at(400), control->range(kCore).values);
  ASSERT_TRUE(control->set(kCore, 1200).ok());
  EXPECT_EQ(tree.get(card + "/pp_dpm_sclk"), "2") << "the first of two that are alike";
  tree.put(card + "/pp_dpm_sclk", "0: 1Mhz\n1: 800Mhz *");
  EXPECT_THAT(open()->range(kCore).values, ElementsAre(1, 800));
  tree.put(card + "/pp_dpm_sclk", "0: 0Mhz\n1: 800Mhz *\nrubbish\n2: 1200Mhz\n3: 1200Mhz");
  remove(card + "/pp_dpm_mclk");
  control = open();
  EXPECT_FALSE(control->range(kMemory).supported);
  EXPECT_FALSE(control->range(kMemory).default_value);
  for (const auto& step : control->snapshot()) EXPECT_EQ(step.target.find("mclk"), std::string::npos);
}

TEST_F(AmdgpuControls, ACapNeedsAReadingAndRoom) {
  const auto range = [&] { return open()->range(kPower); };
  EXPECT_EQ(range().low, 0);
  remove(card + cap + "_min");
  EXPECT_EQ(range().low, 0) << "where nothing is said";
  tree.put(card + cap + "_default", "280000000");
  EXPECT_EQ(range().default_value, 280);
  remove(card + cap + "_default");
  EXPECT_EQ(range().default_value, 300) << "the highest";
  remove(card + cap + "_max");
  EXPECT_EQ(range().high, 250) << "the one of now";
  EXPECT_TRUE(range().supported);
  tree.put(card + cap + "_min", "250000000");
  EXPECT_FALSE(range().supported) << "nothing to choose from";
  control_trees::add_amdgpu(tree);
  tree.put(card + cap, "none");
  EXPECT_FALSE(range().supported);
  remove(card + cap);
  EXPECT_FALSE(range().supported);
  EXPECT_EQ(open()->set(kPower, 200).status, ControlStatus::not_supported);
}

TEST_F(AmdgpuControls, WhatCannotBeReadBackIsForeign) {
  EXPECT_EQ(open()->foreign_setting(), "");
  tree.put(card + level, "perf_determinism");
  EXPECT_THAT(open()->foreign_setting(), HasSubstr("perf_determinism")) << "on a board whose ceiling nobody can read";
  tree.put(instinct + level, "manual");
  EXPECT_THAT(open("amdgpu:card1")->foreign_setting(), HasSubstr("manual")) << "which levels?";
  tree.put(instinct + level, "perf_determinism");
  EXPECT_EQ(open("amdgpu:card1")->foreign_setting(), "");
  tree.put(instinct + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz");
  EXPECT_THAT(open("amdgpu:card1")->foreign_setting(), HasSubstr("perf_determinism"));
  EXPECT_THAT(ceilings(*open("amdgpu:card1")), ElementsAre());
}

TEST_F(AmdgpuControls, ACeilingIsJournalledWhereOneHolds) {
  EXPECT_THAT(ceilings(*open("amdgpu:card1")), ElementsAre()) << "in automatic mode";
  tree.put(instinct + level, "perf_determinism");
  tree.put(instinct + "/pp_od_clk_voltage", "OD_RANGE:\nSCLK: 500Mhz 1700Mhz\nOD_SCLK:\n0: 500Mhz\n1: 1350Mhz\nOD_MCLK:\n0: 400Mhz\n1: 1600Mhz");
  EXPECT_THAT(ceilings(*open("amdgpu:card1")), ElementsAre("1350")) << "wherever its lines stand in the file";
  tree.put(instinct + "/pp_od_clk_voltage", "OD_MCLK:\n0: 400Mhz\n1: 1600Mhz");
  EXPECT_THAT(ceilings(*open("amdgpu:card1")), ElementsAre());
}

TEST_F(AmdgpuControls, ReadTheCapBack) {
  auto control = open();
  ASSERT_TRUE(control->set(kPower, 200).ok());
  EXPECT_TRUE(control->check(kPower, 200).ok());
  tree.put(card + cap, "200900000");
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "the driver counts whole watts";
  tree.put(card + cap, "201000000");
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "one more or less";
  for (const auto& [text, words] : {std::pair{"201500000", "201.5 W"}, std::pair{"198500000", "198.5 W"}}) {
    tree.put(card + cap, text);
    EXPECT_EQ(control->check(kPower, 200).status, ControlStatus::failed);
    EXPECT_THAT(control->check(kPower, 200).message, HasSubstr(words));
  }
  remove(card + cap);
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "nobody can tell";
}

TEST_F(AmdgpuControls, ReadTheClocksBackAsFarAsTheyTell) {
  auto control = open();
  ASSERT_TRUE(control->set(kCore, 1200).ok());
  EXPECT_TRUE(control->check(kCore, 1200).ok());
  tree.put(card + level, "auto");
  EXPECT_EQ(control->check(kCore, 1200).status, ControlStatus::failed);
  EXPECT_THAT(control->check(kCore, 1200).message, HasSubstr("\"auto\" and no more \"manual\""));
  remove(card + level);
  EXPECT_TRUE(control->check(kCore, 1200).ok()) << "nobody can tell";
  auto with_ceiling = open("amdgpu:card1");
  tree.put(instinct + level, "perf_determinism");
  const auto check = [&](const std::string& mhz) {
    tree.put(instinct + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: " + mhz + "Mhz");
    return with_ceiling->check(kCore, 1200).ok();
  };
  EXPECT_TRUE(check("1201") && check("1199")) << "rounded";
  EXPECT_FALSE(check("1202"));
  EXPECT_FALSE(check("1198"));
  tree.put(instinct + "/pp_od_clk_voltage", "c");
  EXPECT_TRUE(with_ceiling->check(kCore, 1200).ok());
  tree.put(instinct + level, "auto");
  EXPECT_THAT(with_ceiling->check(kCore, 1200).message, HasSubstr("perf_determinism"));
}

TEST_F(AmdgpuControls, AClockIsSetInManualModeWhereverItIsFrom) {
  tree.put(card + level, "manual");
  ASSERT_TRUE(open()->set(kCore, 500).ok());
  EXPECT_EQ(tree.get(card + "/pp_dpm_sclk"), "0");
  remove(card + level);
  auto control = open("amdgpu:card1");
  remove(instinct + level);
  std::filesystem::create_directories(tree.real(instinct + level));  // cannot be written
  EXPECT_FALSE(control->set(kCore, 1200).ok());
  EXPECT_THAT(tree.get(instinct + "/pp_od_clk_voltage"), HasSubstr("OD_SCLK")) << "nor is anything else";
}

TEST_F(AmdgpuControls, StepsCarryLevelNumbersAndClocksOnly) {
  auto control = open();
  tree.put(card + level, "manual");
  const auto put_levels = [&](const std::string& value) {
    return control->restore({"amdgpu-levels", card + "/pp_dpm_mclk", value}).ok();
  };
  EXPECT_TRUE(put_levels("0 9"));
  EXPECT_EQ(tree.get(card + "/pp_dpm_mclk"), "0 9");
  for (const char* bad : {"0/1", "0:1", "a", "0\n1", "-1"}) EXPECT_FALSE(put_levels(bad)) << bad;
  EXPECT_EQ(tree.get(card + "/pp_dpm_mclk"), "0 9");
  tree.put(card + level, "auto");
  EXPECT_TRUE(put_levels("1"));
  EXPECT_EQ(tree.get(card + "/pp_dpm_mclk"), "0 9") << "the driver chooses among all levels already";
  EXPECT_FALSE(control->restore({"amdgpu-levels", card + "/pp_od_clk_voltage", "1"}).ok());
  EXPECT_FALSE(control->restore({"amdgpu-ceiling", card + "/pp_od_clk_voltage", "1200"}).ok()) << "it has none";

  auto with_ceiling = open("amdgpu:card1");
  const std::string file = instinct + "/pp_od_clk_voltage", text = tree.get(file);
  const auto put_ceiling = [&](const char* value) { return with_ceiling->restore({"amdgpu-ceiling", file, value}).ok(); };
  EXPECT_TRUE(put_ceiling("1200"));
  EXPECT_EQ(tree.get(file), text) << "another performance level has lifted it already";
  tree.put(instinct + level, "perf_determinism");
  for (const char* bad : {"0", "-5", "10000", "20000", "nan"}) EXPECT_FALSE(put_ceiling(bad)) << bad;
  EXPECT_EQ(tree.get(file), text);
  EXPECT_TRUE(put_ceiling("1"));
  EXPECT_TRUE(put_ceiling("9999"));
  EXPECT_EQ(tree.get(file), "c");
}

}  // namespace
}  // namespace ergotune
