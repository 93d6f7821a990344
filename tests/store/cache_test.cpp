// Caches as different hands write them: every name and unit, odd values, several blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/error.hpp"
#include "store/formats/export.hpp"
#include "store/formats/recording.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Caches : public WrittenFiles {
 protected:
  /// A cache of one parameter `b`, values 1 and 2, with these entries.
  Recording read(const std::string& entries, const std::string& objective = "time") {
    return read_text(R"({"kernel_name": "k", "device_name": "D", "objective": ")" + objective +
                     R"(", "tune_params_keys": ["b"], "tune_params": {"b": [1, 2]}, "cache": {)" + "\n" + entries +
                     "}\n}");
  }
  Recording read_text(const std::string& text) { return WrittenFiles::read("c.json", text); }
  /// The one entry's measurement, of these keys and values.
  Measurement entry(const std::string& keys) {
    const Recording recording = read(R"("1": {"b": 1, )" + keys + "}");
    EXPECT_EQ(recording.size(), 1u) << keys;
    return recording.measurement(0);
  }
};

TEST_F(Caches, EachNameMeansAQuantityInItsUnit) {
  const struct {
    const char* recorded;
    const char* ours;
    double scale;
  } names[] = {{"time", "time", 1e-3},
               {"ps_energy", "energy", 1},
               {"nvml_energy", "energy", 1},
               {"gpu_energy", "energy", 1},
               {"tegra_energy", "energy", 1},
               {"rocm_energy", "energy", 1},
               {"ps_power", "power", 1},
               {"nvml_power", "power", 1},
               {"gpu_power", "power", 1},
               {"tegra_power", "power", 1},
               {"rocm_power", "power", 1},
               {"core_freq", "core_clock", 1e6},
               {"pwr_core_freq", "core_clock", 1e6},
               {"core_clock", "core_clock", 1},
               {"mem_freq", "memory_clock", 1e6},
               {"pwr_mem_freq", "memory_clock", 1e6},
               {"memory_clock", "memory_clock", 1},
               {"temperature", "temperature", 1},
               {"gpu_temp", "temperature", 1},
               {"pwr_temperature", "temperature", 1},
               {"gr_voltage", "core_voltage", 1e-3},
               {"core_voltage", "core_voltage", 1}};
  for (const auto& [recorded, ours, scale] : names) {
    const Measurement m = entry('"' + std::string(recorded) + "\": 40");
    ASSERT_EQ(m.quantities.size(), 1u) << recorded;
    EXPECT_EQ(m.quantities.begin()->first, ours);
    EXPECT_DOUBLE_EQ(m.quantities.begin()->second.value, 40 * scale) << recorded;
    EXPECT_THAT(m.metrics, IsEmpty()) << recorded;
  }
  for (const char* own : {"energy", "power", "GFLOP/s"}) {  // bare names are what the user computed
    const Measurement m = entry('"' + std::string(own) + "\": 40");
    EXPECT_EQ(m.metrics.size(), 1u) << own;
    EXPECT_THAT(m.quantities, IsEmpty()) << own;
  }
}

TEST_F(Caches, TheBestRecordedNameStandsForOurs) {
  const Measurement m = entry(
      R"("gr_voltage": 800, "core_voltage": 3, "pwr_core_freq": 1000, "core_freq": 1200, "gpu_temp": 50, "temperature": 60)");
  EXPECT_DOUBLE_EQ(m.quantities.at("core_voltage").value, 0.8);
  EXPECT_DOUBLE_EQ(m.quantities.at("core_voltage_metric").value, 3);
  EXPECT_DOUBLE_EQ(m.quantities.at("core_clock").value, 1.2e9);
  EXPECT_DOUBLE_EQ(m.quantities.at("pwr_core_freq").value, 1e9);
  EXPECT_DOUBLE_EQ(m.quantities.at("temperature").value, 60);
  EXPECT_DOUBLE_EQ(m.quantities.at("gpu_temp").value, 50);
}

TEST_F(Caches, ListsOfReadingsGiveMeanErrorAndNumber) {
  const Measurement m = entry(
      R"("time": 2.5, "times": [1, 2, 6], "nvml_powers": [100, 110], "core_freqs": [1000, 1200], "own": [3, 5], "pairs": [[0.1, 50]], "none": [], "s": [8], "words": ["a"])");
  EXPECT_DOUBLE_EQ(m.quantities.at("time").value, 2.5e-3) << "the file's own word, not the mean";
  EXPECT_EQ(m.quantities.at("time").n, 3);
  EXPECT_NEAR(m.quantities.at("time").standard_error, std::sqrt(7.0 / 3) * 1e-3, 1e-8);
  EXPECT_DOUBLE_EQ(m.measure_seconds, static_cast<double>(9e-3f));
  EXPECT_DOUBLE_EQ(m.quantities.at("power").value, 105);
  EXPECT_NEAR(m.quantities.at("power").standard_error, 5, 1e-6);
  EXPECT_EQ(m.quantities.at("power").n, 2);
  EXPECT_DOUBLE_EQ(m.quantities.at("core_clock").value, 1.1e9);
  EXPECT_DOUBLE_EQ(m.metrics.at("own"), 4);
  EXPECT_DOUBLE_EQ(m.metrics.at("s"), 8) << "a name of one letter is no plural";
  EXPECT_EQ(m.metrics.size(), 2u);
}

TEST_F(Caches, CostsAreThoseOfTheEntryInSeconds) {
  const Measurement m = entry(
      R"("time": 8, "compile_time": 500, "verification_time": 250, "framework_time": 125, "benchmark_time": 9, "strategy_time": 7)");
  EXPECT_DOUBLE_EQ(m.compile_seconds, 0.5);
  EXPECT_DOUBLE_EQ(m.verify_seconds, 0.25);
  EXPECT_DOUBLE_EQ(m.tuner_seconds, 0.125);
  EXPECT_FLOAT_EQ(static_cast<float>(m.measure_seconds), 8e-3f)
      << "without single times one run is known to have happened";
  EXPECT_EQ(m.quantities.size() + m.metrics.size(), 1u);
  const Recording two =
      read("\"1\": {\"b\": 1, \"time\": 8, \"compile_time\": 500},\n\"2\": {\"b\": 2, \"time\": \"InvalidConfig\"}");
  EXPECT_EQ(two.measurement(1).compile_seconds, 0);
  EXPECT_EQ(two.measurement(1).measure_seconds, 0) << "it did not run; the entry before it did";
}

TEST_F(Caches, WhatPythonWritesForNoNumberIsNoNumber) {
  const Measurement m =
      entry(R"("time": 4, "x": NaN, "y": Infinity, "z": -Infinity, "say": "NaN \" Infinity", "w": 3)");
  EXPECT_DOUBLE_EQ(m.quantities.at("time").value, 4e-3);
  EXPECT_DOUBLE_EQ(m.metrics.at("w"), 3);
  EXPECT_EQ(m.metrics.size(), 1u);
  EXPECT_EQ(entry(R"("time": NaN)").status, Status::runtime_error);
  EXPECT_EQ(entry(R"("time": null)").status, Status::runtime_error);
  EXPECT_EQ(entry(R"("time": "InvalidConfig", "x": null)").status, Status::unsupported);
  EXPECT_EQ(entry(R"("time": 3, "x": null)").status, Status::ok);
  EXPECT_EQ(entry(R"("time": 1e19)").status, Status::runtime_error) << "how old caches mark a failure, in milliseconds";
  EXPECT_EQ(entry(R"("time": 9e18)").status, Status::ok);
  for (const char* word : {"ErrorConfig", "RuntimeFailedConfig"})
    EXPECT_EQ(entry("\"time\": \"" + std::string(word) + '"').status, Status::runtime_error) << word;
  EXPECT_EQ(entry(R"("__error__": "CompilationFailedConfig", "time": null)").status, Status::compile_error);
}

TEST_F(Caches, ParametersAreControlsByTheirNamesAndValuesMayBeAnything) {
  const Recording r = read_text(
      R"({"kernel_name": "k", "tune_params_keys": ["nvml_gr_clock", "nvml_mem_clock", "nvml_pwr_limit", "b", "l"],
"tune_params": {"nvml_gr_clock": [1000], "nvml_mem_clock": [500], "nvml_pwr_limit": [150], "b": [true, 0.5, "w"], "l": [[1, 2]]}, "cache": {
"1": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": 0.5, "l": "[1,2]", "time": 1},
"2": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": true, "l": "[1,2]", "time": 1},
"3": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "l": "[1,2]", "time": 1},
"4": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": null, "l": "[1,2]", "time": 1},
"5": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": 7.5, "l": "[1,2]", "time": 1},
"6": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": 9, "l": "[1,2]", "time": 1},
"7": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": "w", "l": "[1,2]", "time": 1},
"8": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": "w", "l": "[1,2]", "time": 1},
"9": {"nvml_gr_clock": 1000, "nvml_mem_clock": 500, "nvml_pwr_limit": 150, "b": 7.5, "l": "[1,2]", "time": 1}}
})");
  EXPECT_EQ(r.parameters[0].kind, ParameterKind::core_clock_mhz);
  EXPECT_EQ(r.parameters[1].kind, ParameterKind::memory_clock_mhz);
  EXPECT_EQ(r.parameters[2].kind, ParameterKind::power_limit_w);
  EXPECT_EQ(r.parameters[3].kind, ParameterKind::code);
  ASSERT_EQ(r.size(), 7u);
  EXPECT_THAT(r.parameters[3].values, ElementsAre(true, 0.5, "w", 7.5, 9));
  EXPECT_EQ(r.configuration(0)[3], Value(0.5));
  EXPECT_EQ(r.configuration(1)[3], Value(true));
  EXPECT_EQ(r.configuration(2)[3], Value(7.5));
  EXPECT_EQ(r.configuration(6)[3], Value(7.5));
  EXPECT_THAT(r.warnings, ElementsAre("2 damaged entries were left out", HasSubstr("2 values of \"b\"")));
}

TEST_F(Caches, OneOfManyBlocksReadsAsOneOfFew) {  // 256 KiB a block, threads from 4 MiB on
  std::string entries;
  for (int i = 0; i < 60000; ++i)
    entries += (i ? ",\n\"" : "\"") + std::to_string(i) + "\": {\"b\": " + std::to_string(i % 7 + 1) +
               ", \"time\": " + std::to_string(i + 1) + (i % 1000 == 3 ? ", \"late\": 5" : "") + ", \"pad\": \"" +
               std::string(40, 'x') + "\"}";
  const Recording r = read(entries);
  ASSERT_EQ(r.size(), 60000u);
  EXPECT_THAT(r.parameters[0].values, testing::SizeIs(7));
  std::size_t late = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    ASSERT_EQ(r.configuration(i)[0], Value(static_cast<std::int64_t>(i % 7 + 1))) << i;
    ASSERT_DOUBLE_EQ(r.column("time")->value[i], static_cast<double>(i + 1) * 1e-3);
    late += !std::isnan(r.column("late")->value[i]);
  }
  EXPECT_EQ(late, 60u);
  EXPECT_EQ(r.measurement(3).metrics.at("late"), 5);
  EXPECT_THAT(r.warnings, ElementsAre(HasSubstr("5 values of \"b\"")));
}

}  // namespace
}  // namespace ergotune
