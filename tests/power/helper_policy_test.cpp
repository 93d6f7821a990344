// The helper's policy file: who, which device, which values; and files that root must not believe.
#include "power/helper_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "ergotune/base/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/effective_user.hpp"

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
  EXPECT_EQ(parse_policy("", "p.toml").rule_for({1, 0, {0}}, "tegra", "t"), nullptr)
      << "nobody, root neither";
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

/// What is said of a policy; empty where it is taken.
std::string complaint(const std::string& text) {
  try {
    parse_policy(text, "p.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(HelperPolicy, NumbersHaveBounds) {
  for (const char* good : {"lease_seconds = 3600", "changes_per_second = 1000", "burst = 1000000", "lease_seconds = 0.5"})
    EXPECT_EQ(complaint(good), "") << good;
  for (const char* bad : {"lease_seconds = 3601", "changes_per_second = 1001", "burst = 1000001", "burst = 0", "burst = \"many\""})
    EXPECT_THAT(complaint(bad), HasSubstr("must be a number above 0, at most")) << bad;
  EXPECT_EQ(parse_policy("burst = 0.25", "p").burst, 1) << "a change at a time";
  EXPECT_EQ(parse_policy("burst = 2", "p").burst, 2);
}

TEST(HelperPolicy, RulesAreWholeAndTheirBoundsInOrder) {
  const auto rule = [](const std::string& more) { return complaint("[[allow]]\nusers=[0]\ndevices=[\"*\"]\n" + more); };
  for (const char* good : {"power_limit_w=[0, 0]", "power_limit_w=[5, 5]", "memory_clock_mhz=[1, 2.5]", "take_over=false", "groups=[0, 4294967294]"})
    EXPECT_EQ(rule(good), "") << good;
  for (const char* bad : {"power_limit_w=[1]", "power_limit_w=[1, 2, 3]", "power_limit_w=[-1, 2]", "power_limit_w=[2, 1]", "power_limit_w=5",
                          "power_limit_w=[\"a\", 2]", "power_limit_w=[1, inf]", "power_limit_w=[nan, 5]"})
    EXPECT_THAT(rule(bad), HasSubstr("lowest, highest")) << bad;
  EXPECT_THAT(rule("groups=[\"no-such-group\"]"), HasSubstr("there is no group \"no-such-group\""));
  EXPECT_THAT(rule("groups=[4294967295]"), HasSubstr("a group is a name or a number"));
  EXPECT_THAT(rule("groups=3"), HasSubstr("groups must be a list"));
  EXPECT_THAT(complaint("[[allow]]\nusers=[0]\ndevices=[\"\"]"), HasSubstr("a device is named"));
  EXPECT_THAT(complaint("[[allow]]\nusers=[0]\ndevices=[7]"), HasSubstr("a device is named"));
  EXPECT_EQ(complaint("[[allow]]\ngroups=[0]\ndevices=[\"*\"]"), "") << "groups alone will do";
  EXPECT_NE(parse_policy("[[allow]]\nusers=[0]\ndevices=[\"key\"]", "p").rule_for({1, 0, {}}, "id", "key"), nullptr) << "by its key";
}

TEST(HelperPolicy, BoundsBelongToTheRange) {
  Rule rule;
  rule.bounds[ControlQuantity::core_clock_mhz] = {400, 800};
  ControlRange range;
  range.supported = true;
  range.values = {399, 400, 800, 801};
  range.default_value = 399;
  const auto narrowed = clamp_range(range, rule, ControlQuantity::core_clock_mhz);
  EXPECT_THAT(narrowed.values, ::testing::ElementsAre(400, 800));
  EXPECT_EQ(narrowed.default_value, 400);
  range.values = {100, 900};
  EXPECT_FALSE(clamp_range(range, rule, ControlQuantity::core_clock_mhz).supported);
  range.values.clear();
  range.low = 800;
  range.high = 900;
  EXPECT_TRUE(clamp_range(range, rule, ControlQuantity::core_clock_mhz).supported) << "one value";
  range.default_value.reset();
  EXPECT_FALSE(clamp_range(range, rule, ControlQuantity::core_clock_mhz).default_value);
  range.supported = false;
  EXPECT_FALSE(clamp_range(range, rule, ControlQuantity::core_clock_mhz).supported);
}

TEST(HelperPolicy, AFileOfASensibleSizeIsRead) {
  control_trees::Tree tree;
  const auto file = tree.root() / "policy.toml";
  chmod(tree.root().c_str(), 0755);
  for (const auto& [size, good] : {std::pair{(1u << 20) - 1, true}, {1u << 20, false}}) {
    std::ofstream(file) << "#" << std::string(size - 1, 'x');
    chmod(file.c_str(), 0644);
    if (good)
      EXPECT_NO_THROW(load_policy(file.string())) << size;
    else
      EXPECT_THROW(load_policy(file.string()), UserError) << size;
  }
}

TEST(HelperPolicy, AFileIsReadToItsLastByte) {
  control_trees::Tree tree;
  const auto file = tree.root() / "policy.toml";
  chmod(tree.root().c_str(), 0755);
  const std::string end = "\nburst = 22";
  for (const std::size_t size : {4096u, 4097u}) {
    std::ofstream(file) << "#" << std::string(size - 1 - end.size(), 'x') << end;
    chmod(file.c_str(), 0644);
    EXPECT_EQ(load_policy(file.string()).burst, 22) << size;
  }
}

TEST(HelperPolicy, AUsersOwnOrRootsFileIsTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  control_trees::Tree tree;
  const auto file = tree.root() / "policy.toml";
  std::ofstream(file) << kText;
  chmod(tree.root().c_str(), 0755);
  chmod(file.c_str(), 0644);
  const auto refused = [&] {
    const EffectiveUser nobody;
    try {
      load_policy(file.string());
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(), "") << "root's, for anybody";
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_EQ(refused(), "") << "one's own";
  EXPECT_THROW(load_policy(file.string()), UserError) << "for root it is another's";
  ASSERT_EQ(chown(tree.root().c_str(), 1000, 1000), 0);
  EXPECT_THAT(refused(), HasSubstr("lies in a folder that others can write"));
}

TEST(HelperPolicy, AFileThatOthersCanWriteIsRefused) {
  control_trees::Tree tree;
  const auto file = tree.root() / "policy.toml";
  std::ofstream(file) << kText;
  chmod(tree.root().c_str(), 0755);
  chmod(file.c_str(), 0644);
  EXPECT_EQ(load_policy(file.string()).rules.size(), 2u);
  const auto refused = [&](const std::string& path, const char* words) {
    try {
      load_policy(path);
      ADD_FAILURE() << words;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
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
