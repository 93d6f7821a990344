// The helper's policy file: who, which device, which values; and files that root must not believe.
#include "helper/helper_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"

namespace ergotune::helper {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = R"(
lease_seconds = 5
changes_per_second = 50

[[allow]]
users = [1000, "root"]
devices = ["tegra"]
core_clock_mhz = [400, 1100]

[[allow]]
groups = [77]
devices = ["*"]
power_limit_w = [100, 200]
take_over = true
)";

TEST(HelperPolicy, SaysWhoMayDoWhat) {
  const auto policy = parse_policy(kText, "p.toml");
  EXPECT_EQ(policy.lease_seconds, 5);
  EXPECT_NE(policy.rule_for({1, 1000, {}}, "tegra", "/sys/x"), nullptr);
  EXPECT_NE(policy.rule_for({1, 0, {}}, "tegra", "/sys/x"), nullptr) << "by name";
  EXPECT_EQ(policy.rule_for({1, 1000, {}}, "nvml:0", "GPU-1"), nullptr) << "another device";
  EXPECT_EQ(policy.rule_for({1, 1001, {5}}, "tegra", "/sys/x"), nullptr) << "another user";
  const auto* by_group = policy.rule_for({1, 1001, {5, 77}}, "nvml:0", "GPU-1");
  ASSERT_NE(by_group, nullptr);
  EXPECT_TRUE(by_group->take_over);
  EXPECT_EQ(parse_policy("", "p.toml").rule_for({1, 0, {0}}, "tegra", "t"), nullptr) << "nobody, root neither";
}

TEST(HelperPolicy, NarrowsRanges) {
  const auto policy = parse_policy(kText, "p.toml");
  ControlRange clocks;
  clocks.supported = true;
  clocks.values = {306, 408, 1020, 1300};
  clocks.default_value = 1300;
  const auto narrowed = clamp_range(clocks, policy.rules[0], ControlQuantity::core_clock_mhz);
  EXPECT_THAT(narrowed.values, ::testing::ElementsAre(408, 1020));
  EXPECT_EQ(narrowed.low, 408);
  EXPECT_EQ(narrowed.high, 1020);
  EXPECT_EQ(narrowed.default_value, 1020);
  EXPECT_FALSE(clamp_range(clocks, policy.rules[1], ControlQuantity::core_clock_mhz).supported)
      << "a quantity that is not named may not be set";
  ControlRange watts;
  watts.supported = true;
  watts.low = 50;
  watts.high = 150;
  EXPECT_EQ(clamp_range(watts, policy.rules[1], ControlQuantity::power_limit_w).low, 100);
  watts.high = 80;
  EXPECT_FALSE(clamp_range(watts, policy.rules[1], ControlQuantity::power_limit_w).supported);
}

TEST(HelperPolicy, MistakesAreNamedWithTheirPlace) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"lease_secnds = 5", "lease_seconds"},
      {"lease_seconds = 0", "above 0"},
      {"lease_seconds = nan", "above 0"},
      {"[[allow]]\nusers=[1]", "devices"},
      {"[[allow]]\ndevices=[\"*\"]", "users or groups"},
      {"[[allow]]\nusers=[\"nobody-of-this-name\"]\ndevices=[\"*\"]", "nobody-of-this-name"},
      {"[[allow]]\nusers=[-1]\ndevices=[\"*\"]", "name or a number"},
      {"[[allow]]\nusers=[4294967295]\ndevices=[\"*\"]", "name or a number"},
      {"[[allow]]\nusers=[1]\ndevices=[\"*\"]\npower_limit_w=[300,200]", "lowest, highest"},
      {"[[allow]]\nusers=[1]\ndevices=[\"*\"]\ntake_over=\"yes\"", "true or false"},
      {"allow = 3", "list"},
      {"allow = [3]", "[[allow]]"},
      {"users = [", "p.toml:1"},
      {"burst = 3\n[,allow]]\nusers = [1]", "not TOML"},
      {"burst = [1,}]", "not TOML"},
      {"[", "p.toml:1"},
  };
  for (const auto& [text, words] : mistakes) {
    try {
      parse_policy(text, "p.toml");
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words)) << text;
      if (std::string(words) != "not TOML") {
        EXPECT_THAT(error.what(), HasSubstr("p.toml:")) << text;
      }
    }
  }
}

TEST(HelperPolicy, AFileThatOthersCanWriteIsRefused) {
  control_trees::Tree tree;
  const auto file = tree.root() / "policy.toml";
  std::ofstream(file) << kText;
  chmod(tree.root().c_str(), 0755);
  chmod(file.c_str(), 0644);
  EXPECT_EQ(load_policy(file.string()).rules.size(), 2u);
  const auto refused = [&](const std::string& path, const char* words) {
    EXPECT_THAT(error_of([&] { load_policy(path); }), HasSubstr(words)) << words;
  };
  chmod(file.c_str(), 0664);
  refused(file.string(), "written by others");
  chmod(file.c_str(), 0646);
  refused(file.string(), "written by others");
  chmod(file.c_str(), 0644);
  std::filesystem::create_symlink(file, tree.root() / "link.toml");
  refused((tree.root() / "link.toml").string(), "link");
  chmod(tree.root().c_str(), 0777);
  refused(file.string(), "folder");
  chmod(tree.root().c_str(), 0755);
  refused(tree.root().string(), "plain file");
  refused((tree.root() / "none.toml").string(), "cannot be read");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 1000, 1000), 0);
    refused(file.string(), "belongs to user 1000");
  }
}

}  // namespace
}  // namespace ergotune::helper
