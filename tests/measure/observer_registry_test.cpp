#include "ergotune/measure/observer_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ergotune/base/error.hpp"
#include "ergotune/problem/quantity.hpp"
#include "measure/cupti_host.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

std::string complaint(const ObserverSpec& spec) {
  DeviceInfo device;
  device.name = "a device";
  const MeasureOptions measure;
  try {
    make_observer(spec, {device, measure});
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
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
    if (observer.name == "energy" || observer.name == "trace" || observer.name == "counters" || observer.name == "perf") continue;  // need more
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

TEST(ObserverRegistry, ChipsAreThoseOfTheirArchitecture) {
  const std::map<int, std::string> chips = {{75, "TU102"}, {80, "GA100"}, {86, "GA102"}, {87, "GA10B"}, {89, "AD102"}, {90, "GH100"},
                                            {100, "GB100"}, {103, "GB110"}, {110, "GB10B"}, {120, "GB202"}, {121, "GB20B"}};
  for (int architecture = 50; architecture < 130; ++architecture) {
    const auto known = chips.find(architecture);
    EXPECT_EQ(cupti::chip_of_architecture(architecture), known == chips.end() ? "" : known->second) << architecture;
  }
}

TEST(ObserverRegistry, PassesHaveBounds) {
  for (const std::int64_t good : {1, 1'000'000}) EXPECT_EQ(complaint({"host_time", {{"passes", {Value(good)}}}, {}}), "none") << good;
  EXPECT_NE(complaint({"host_time", {{"passes", {Value(std::int64_t{1'000'001})}}}, {}}), "none");
}

TEST(ObserverRegistry, ANumberMayBeWhole) {
  EXPECT_EQ(complaint({"launches", {}, {}}), "none");
  EXPECT_NO_THROW(check_observers({{"energy", {{"seconds", {2}}, {"idle", {0.5}}}, {}}}));
  EXPECT_THROW(check_observers({{"energy", {{"seconds", {"2"}}}, {}}}), UserError);
  EXPECT_THROW(check_observers({{"energy", {{"seconds", {1, 2}}}, {}}}), UserError);
  EXPECT_NO_THROW(check_observers({{"energy", {{"sensors", {"a", "b"}}}, {}}}));
  EXPECT_EQ(observer_of("energy"), "energy");
  EXPECT_EQ(observer_of("nothing of anybody"), "");
}

TEST(ObserverRegistry, ChecksWithoutADevice) {
  EXPECT_NO_THROW(check_observers({{"energy", {{"sensors", {"nvml:0/energy"}}, {"seconds", {2}}}, {}}}));
  EXPECT_THROW(check_observers({{"launches", {}, {}}, {"unknown", {}, {}}}), UserError);
}

TEST(ObserverRegistry, OnlySensorsAndMetricsMayBeSeveral) {
  std::map<std::string, std::vector<Value>> defaults;
  for (const auto& observer : observers())
    for (const auto& option : observer.options) {
      EXPECT_EQ(option.list, option.name == "sensors" || option.name == "metrics") << observer.name << ", " << option.name;
      defaults[observer.name + "." + option.name] = option.default_values;
    }
  EXPECT_THAT(defaults.at("host_time.passes"), ElementsAre(Value(3)));
  EXPECT_THAT(defaults.at("trace.folder"), ElementsAre(Value("traces")));
  EXPECT_TRUE(defaults.at("energy.sensors").empty()) << "the device's own";
  const DeviceInfo device;
  const MeasureOptions measure;
  EXPECT_EQ(make_observer({"host_time", {}, {}}, {device, measure})->passes(), 3);
}

TEST(ObserverRegistry, MetricsThatAreNamedTakeThePlaceOfTheUsual) {
  EXPECT_THAT(quantities_of({"counters", {{"metrics", {"ipc", "dram__bytes_read.sum"}}}, {}}), ElementsAre("ipc", "dram__bytes_read.sum"));
  EXPECT_EQ(quantities_of({"counters", {}, {}}).size(), 20u);
  EXPECT_THAT(quantities_of({"host_time", {}, {}}), ElementsAre("host_time"));
  EXPECT_THAT(quantities_of({"perf", {{"metrics", {"cycles"}}}, {}}), ElementsAre("cycles"));
}

TEST(ObserverRegistry, EachObserverKnowsItsOwnMetrics) {
  EXPECT_NO_THROW(check_observers({{"perf", {{"metrics", {"cycles"}}}, {}}, {"counters", {{"metrics", {"ipc"}}}, {}}}));
  EXPECT_THROW(check_observers({{"perf", {{"metrics", {"ipc"}}}, {}}}), UserError);
  EXPECT_THROW(check_observers({{"counters", {{"metrics", {"cycles"}}}, {}}}), UserError);
  EXPECT_EQ(observer_of("l2_tex_read_hit_rate"), "counters") << "one that is not among the usual";
  EXPECT_EQ(observer_of("dram__bytes_read.sum"), "counters") << "a chip's own";
  EXPECT_EQ(observer_of("cycles"), "perf");
}

TEST(ObserverRegistry, WhatIsAskedForTakesThePlaceOfWhatTheProblemSays) {
  std::vector<ObserverSpec> observers{{"launches", {}, {}}, {"host_time", {{"passes", {7}}}, {}}};
  ask_for_observer(observers, "host_time:passes=2");
  ASSERT_EQ(observers.size(), 2u);
  EXPECT_EQ(observers[0].name, "launches");
  EXPECT_THAT(observers[1].options.at("passes"), ElementsAre(Value(2)));
}

TEST(ObserverRegistry, ReadsOneFromTheCommandLine) {
  EXPECT_EQ(parse_observer("launches").name, "launches");
  const ObserverSpec spec = parse_observer("counters:metrics=a,metrics=b,passes=3,share=0.5,whole=true");
  EXPECT_EQ(spec.name, "counters");
  EXPECT_THAT(spec.options.at("metrics"), ElementsAre(Value("a"), Value("b")));
  EXPECT_THAT(spec.options.at("passes"), ElementsAre(Value(3)));
  EXPECT_THAT(spec.options.at("share"), ElementsAre(Value(0.5)));
  EXPECT_TRUE(spec.options.at("whole").front().is_bool());
  const ObserverSpec odd = parse_observer("x:a=true,b=false,c=3,d=3x,e=0.5x,f=99999999999999999999,g=truer");
  EXPECT_THAT(odd.options.at("a"), ElementsAre(Value(true)));
  EXPECT_THAT(odd.options.at("b"), ElementsAre(Value(false)));
  EXPECT_TRUE(odd.options.at("c").front().is_integer());
  for (const char* text : {"d", "e", "g"}) EXPECT_TRUE(odd.options.at(text).front().is_string()) << text;
  EXPECT_EQ(odd.options.at("f").front().as_real(), 1e20) << "too long for an integer";
  for (const char* bad : {"", ":a=1", "x:", "x:a", "x:=1", "x:a=1,"})
    EXPECT_THROW(parse_observer(bad), UserError) << bad;
}

}  // namespace
}  // namespace ergotune
