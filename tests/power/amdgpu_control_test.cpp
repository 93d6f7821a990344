// The amdgpu control at its edges: which GPUs have a ceiling, what a cap must be, what is still set, what a step may
// write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/control_trees/control_trees.hpp"
#include "power/controls/control.hpp"
#include "power/controls/control_sysfs.hpp"

namespace ergotune {
namespace {

using control_trees::kAmdCard;
using control_trees::kInstinctCard;
using ::testing::HasSubstr;
constexpr auto kCore = ControlQuantity::core_clock_mhz;
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
};

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

}  // namespace
}  // namespace ergotune
