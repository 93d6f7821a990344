#include "measure/observers/observer_registry.hpp"
#include "ergotune/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

std::string complaint(const ObserverSpec& spec) {
  DeviceInfo device;
  device.name = "a device";
  const MeasureOptions measure;
  return error_of([&] { make_observer(spec, {device, measure}); }, "none");
}

TEST(ObserverRegistry, EveryEntryIsDescribedAndNamesAreDistinct) {
  std::set<std::string> names;
  for (const auto& observer : observers()) {
    EXPECT_TRUE(names.insert(observer.name).second) << observer.name;
    EXPECT_FALSE(observer.summary.empty()) << observer.name;
    EXPECT_FALSE(observer.quantities.empty()) << observer.name;
    for (const auto& name : observer.quantities) EXPECT_NE(quantity_info(name), nullptr) << name;
    for (const auto& option : observer.options) EXPECT_FALSE(option.help.empty()) << option.name;
  }
  EXPECT_TRUE(names.contains("energy"));
}

TEST(ObserverRegistry, MakesWhatItDescribes) {
  const DeviceInfo device;
  const MeasureOptions measure;
  for (const auto& observer : observers()) {
    if (observer.name == "energy" || observer.name == "trace") continue;  // need a sensor
    const auto made = make_observer({observer.name, {}, {}}, {device, measure});
    EXPECT_EQ(made->name(), observer.name);
    EXPECT_EQ(made->phase(), observer.phase);
  }
}

TEST(ObserverRegistry, ComplaintsNamePlaceAndCure) {
  const SourcePlace place{"p.toml", 7, 1};
  EXPECT_EQ(complaint({"host_tiem", {}, place}),
            "p.toml:7:1: unknown observer \"host_tiem\" (did you mean \"host_time\"?)");
  EXPECT_EQ(complaint({"host_time", {{"pases", {3}}}, place}),
            "p.toml:7:1: observer \"host_time\" has no option \"pases\" (did you mean \"passes\"?)");
  EXPECT_EQ(complaint({"host_time", {{"passes", {"many"}}}, place}),
            "p.toml:7:1: \"passes\" of observer \"host_time\" must be an integer");
  EXPECT_EQ(complaint({"host_time", {{"passes", {1, 2}}}, place}),
            "p.toml:7:1: \"passes\" of observer \"host_time\" must be an integer");
  EXPECT_EQ(complaint({"host_time", {{"passes", {0}}}, place}),
            "p.toml:7:1: \"passes\" of observer \"host_time\" must be at least 1, not 0");
  EXPECT_EQ(complaint({"launches", {{"metrics", {"a"}}}, place}),
            "p.toml:7:1: observer \"launches\" has no option \"metrics\"; it has none");
  EXPECT_EQ(complaint({"energy", {{"sensors", {3}}}, place}),
            "p.toml:7:1: \"sensors\" of observer \"energy\" must be a string, or a list of such");
}

TEST(ObserverRegistry, ChecksWithoutADevice) {
  EXPECT_NO_THROW(check_observers({{"energy", {{"sensors", {"nvml:0/energy"}}, {"exactly", {1}}}, {}}}));
  EXPECT_THROW(check_observers({{"launches", {}, {}}, {"unknown", {}, {}}}), UserError);
}

TEST(ObserverRegistry, OnlySensorsAndMetricsMayBeSeveral) {
  std::map<std::string, std::vector<Value>> defaults;
  for (const auto& observer : observers())
    for (const auto& option : observer.options) {
      EXPECT_EQ(option.list, option.name == "sensors" || option.name == "metrics")
          << observer.name << ", " << option.name;
      defaults[observer.name + "." + option.name] = option.default_values;
    }
  EXPECT_THAT(defaults.at("host_time.passes"), ElementsAre(Value(3)));
  EXPECT_THAT(defaults.at("trace.folder"), ElementsAre(Value("traces")));
  EXPECT_TRUE(defaults.at("energy.sensors").empty()) << "the device's own";
  const DeviceInfo device;
  const MeasureOptions measure;
  EXPECT_EQ(make_observer({"host_time", {}, {}}, {device, measure})->passes(), 3);
}

TEST(ObserverRegistry, WhatIsRequestedForTakesThePlaceOfWhatTheProblemSays) {
  std::vector<ObserverSpec> observers{{"launches", {}, {}}, {"host_time", {{"passes", {7}}}, {}}};
  ask_for_observer(observers, "host_time:passes=2");
  ASSERT_EQ(observers.size(), 2u);
  EXPECT_EQ(observers[0].name, "launches");
  EXPECT_THAT(observers[1].options.at("passes"), ElementsAre(Value(2)));
}

}  // namespace
}  // namespace ergotune
