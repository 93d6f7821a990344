// The table of quantities, with those that observers declare.
#include "problem/tables/quantity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "measure/observers/observer_registry.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Every name under which a source file of the library puts a quantity into a measurement.
std::set<std::string> produced() {
  const std::regex written(
      R"re((?:quantities\[|\bput\(result, |(?:\bput|\bobserved|\bnote|\bnote_resource)\(|results\(\) override \{\s*return \{\{)"(\w+)")re");
  std::set<std::string> names;
  for (const char* layer : {"measure", "evaluate", "tune"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ERGOTUNE_SOURCE_DIR) / "src" / layer)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = contents(entry.path());
      for (std::sregex_iterator i(text.begin(), text.end(), written), end; i != end; ++i) names.insert((*i)[1]);
    }
  }
  return names;
}

TEST(Quantities, WhateverIsMeasuredIsInTheTable) {
  const std::set<std::string> names = produced();
  EXPECT_GE(names.size(), 13u) << "the pattern no longer finds what writes quantities";
  for (const std::string& name : names) EXPECT_NE(quantity_info(name), nullptr) << name;
  for (const ObserverDescription& observer : observers())
    for (const std::string& name : observer.quantities) EXPECT_NE(quantity_info(name), nullptr) << name;
}

TEST(Quantities, TheManualHoldsThemAndTheObservers) {
  const std::string manual = contents(fs::path(ERGOTUNE_SOURCE_DIR) / "docs" / "measuring.md");
  for (const QuantityInfo& info : quantities()) {
    const std::string row = fmt::format("| `{}` | {} | {} | {} | {} |", info.name, info.unit, info.meaning,
                                        info.better ? "less" : "", to_string(info.producer));
    EXPECT_NE(manual.find(row), std::string::npos) << "add to docs/measuring.md: " << row;
  }
  for (const ObserverDescription& observer : observers()) {
    std::vector<std::string> options;
    for (const ObserverOption& option : observer.options) options.push_back(fmt::format("`{}`", option.name));
    const std::string row = fmt::format("\n| `{}`{} |", observer.name,
                                        options.empty() ? "" : fmt::format(" ({})", fmt::join(options, ", ")));
    EXPECT_NE(manual.find(row), std::string::npos) << "add to docs/measuring.md, Observers:" << row;
  }
}

TEST(Quantities, NamesAreDifferentAndFound) {
  std::set<std::string_view> names;
  for (const QuantityInfo& info : quantities()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(quantity_info(info.name), &info);
    EXPECT_FALSE(info.meaning.empty()) << info.name;
  }
  EXPECT_EQ(quantity_info("voltage"), nullptr);
}

TEST(Quantities, CountersHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const QuantityInfo& info : quantities()) names.insert(info.name);
  for (const CounterInfo& counter : counter_names()) EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
  for (const PerfCounterInfo& counter : perf_counter_names())
    EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
}

TEST(Quantities, UnitsAreTheMetricsOwnOursOrKnownByTheirEnding) {
  const std::vector<Metric> metrics{{"gflops", Expression::parse("1 / time"), "GFLOP/s"},
                                    {"energy", Expression::parse("2 * time"), "kWh"},
                                    {"bare", Expression::parse("time"), ""}};
  EXPECT_EQ(unit_of("gflops", metrics), "GFLOP/s");
  EXPECT_EQ(unit_of("energy", metrics), "kWh");
  EXPECT_EQ(unit_of("bare", metrics), "");
  EXPECT_EQ(unit_of("energy"), "J");
  EXPECT_EQ(unit_of("core_voltage"), "V");
  EXPECT_EQ(unit_of("temperature"), "°C");
  EXPECT_EQ(unit_of("local_bytes"), "B");
  EXPECT_EQ(unit_of("registers"), "");
  EXPECT_EQ(unit_of("ps_energy"), "J");
  EXPECT_EQ(unit_of("time*energy"), "") << "an expression is no quantity";
  EXPECT_EQ(unit_of("tegra_power"), "W");
  EXPECT_EQ(unit_of("benchmark_time"), "");  // ms in some files, s in others
}

TEST(Quantities, WhatMustBePositiveToBeBelieved) {
  for (const char* name : {"time", "energy", "power", "core_clock", "ps_energy", "kernel_seconds"})
    EXPECT_TRUE(must_be_positive(name)) << name;
  for (const char* name : {"error", "temperature", "registers", "local_bytes", "gflops"})
    EXPECT_FALSE(must_be_positive(name)) << name;
}

TEST(Quantities, SensorsAndRounds) {
  for (const char* name : {"energy", "power", "idle_subtracted_energy", "core_clock", "temperature"})
    EXPECT_TRUE(quantity_info(name)->needs_sensor()) << name;
  for (const char* name : {"time", "error", "registers"}) EXPECT_FALSE(quantity_info(name)->needs_sensor()) << name;
  for (const char* name : {"registers", "shared_bytes", "local_bytes"})
    EXPECT_FALSE(quantity_info(name)->averaged()) << name;
  EXPECT_TRUE(quantity_info("time")->averaged());
}

}  // namespace
}  // namespace ergotune
