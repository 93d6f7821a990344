#include "problem/tables/device_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

TEST(DeviceProfile, EveryShippedNumberHasASourceOrIsMarkedAssumed) {
  const auto names = device_profile_names();
  ASSERT_GE(names.size(), 10u);
  for (const std::string& name : names) {
    const DeviceProfile profile = load_device_profile(name);
    const auto explained = [&](const std::string& key) {
      EXPECT_TRUE(profile.sources.contains(key) != profile.assumed.contains(key)) << name << ": " << key;
    };
    for (const auto& [key, value] : profile.numbers) explained(key);
    for (const auto& [key, value] : profile.lists) explained(key);
    EXPECT_GT(profile.numbers.at("power.tdp_w"), profile.numbers.at("power.idle_w")) << name;
    EXPECT_TRUE(profile.properties.contains("device.max_threads_per_block")) << name;
  }
}

TEST(DeviceProfile, CarriesTheNumbersOfGoingGreensTableOne) {
  const DeviceProfile a100 = load_device_profile("A100");
  EXPECT_EQ(a100.name, "NVIDIA A100-PCIE-40GB");
  EXPECT_DOUBLE_EQ(a100.numbers.at("compute.bandwidth"), 1555e9);
  EXPECT_DOUBLE_EQ(a100.numbers.at("power.tdp_w"), 250);
  EXPECT_EQ(a100.properties.at("device.multiprocessors").as_integer(), 108);
  const DeviceProfile jetson = load_device_profile("Xavier NX");
  EXPECT_EQ(jetson.lists.at("clock.core_mhz").size(), 15u);
}

TEST(DeviceProfile, IsFoundByManyNames) {
  for (const char* name : {"rtx_a4000", "RTX A4000", "NVIDIA RTX A4000", "a4000"}) {
    EXPECT_EQ(load_device_profile(name).name, "NVIDIA RTX A4000") << name;
  }
  EXPECT_EQ(load_device_profile("Tesla K40c").name, "Tesla K40c");
}

TEST(DeviceProfile, AnUnknownNameListsTheShippedOnes) {
  EXPECT_THAT(error_of([&] { load_device_profile("a1000"); }), testing::HasSubstr("titan_rtx"));
}

TEST(DeviceProfile, AUsersFileIsReadAndItsMistakesHaveAPlace) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "mine.toml";
  std::ofstream(file) << "name = \"Mine\"\n[device]\nmultiprocessors = 3\n[power]\nidle_w = \"ten\"\n";
  try {
    load_device_profile(file);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.place().line, 5);
  }
  std::ofstream(file)
      << "name = \"Mine\"\nassumed = [\"power.*\"]\n[device]\nmultiprocessors = 3\n[power]\nidle_w = 10\n";
  const DeviceProfile profile = load_device_profile(file);
  EXPECT_EQ(profile.properties.at("device.multiprocessors").as_integer(), 3);
  EXPECT_TRUE(profile.assumed.contains("power.idle_w"));
}

}  // namespace
}  // namespace ergotune
