// T4 results of other hands: what may be missing, and what words mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class T4 : public WrittenFiles {
 protected:
  /// One result of parameter `b`, with more of it and of the file.
  Recording result(const std::string& more = "", const std::string& file = "") {
    return read("k.x.T4.json", R"({"results": [{"configuration": {"b": 1}, "invalidity": "correct")" + more +
                                   "}]" + file + "}");
  }
  Measurement of(const std::string& more, const std::string& file = "") {
    return result(more, file).measurement(0);
  }
};

TEST_F(T4, AMeasurementIsInItsUnitAndATimeInTheFiles) {
  const struct {
    const char* unit;
    double scale;
  } units[] = {{"s", 1},     {"J", 1},     {"W", 1},     {"Hz", 1},       {"V", 1},
               {"ms", 1e-3}, {"mJ", 1e-3}, {"mW", 1e-3}, {"mV", 1e-3},    {"us", 1e-6},
               {"ns", 1e-9}, {"MHz", 1e6}, {"", 1},      {"elephants", 1}};
  for (const auto& [unit, scale] : units) {
    const Measurement m =
        of(R"(, "measurements": [{"name": "own", "value": 3, "unit": ")" + std::string(unit) + R"("}])");
    EXPECT_DOUBLE_EQ(m.metrics.at("own"), 3 * scale) << unit;
  }
  const std::string times =
      R"(, "measurements": [{"name": "time", "value": 3}, {"name": "own", "value": 3}])";
  EXPECT_DOUBLE_EQ(of(times).quantities.at("time").value, 3e-3)
      << "milliseconds where nothing says otherwise";
  const Measurement seconds = of(times, R"(, "metadata": {"timeunit": "seconds"})");
  EXPECT_DOUBLE_EQ(seconds.quantities.at("time").value, 3);
  EXPECT_DOUBLE_EQ(of(times, R"(, "metadata": {"timeunit": "nanoseconds"})").metrics.at("own"), 3)
      << "it is no time";
  EXPECT_DOUBLE_EQ(
      of(R"(, "measurements": [{"name": "gr_voltage", "value": 3}])").quantities.at("core_voltage").value,
      3e-3);
}

TEST_F(T4, CostsAreThoseThatAreNumbers) {
  const auto costs = [](const Measurement& m) {
    return std::vector{m.compile_seconds, m.verify_seconds, m.tuner_seconds, m.measure_seconds};
  };
  const auto seconds = [&](const std::string& times) {
    return costs(of(R"(, "times": {)" + times + "}", R"(, "metadata": {"timeunit": "s"})"));
  };
  using Costs = std::vector<double>;
  EXPECT_EQ(seconds(R"("compilation": 1)"), (Costs{1, 0, 0, 0}));
  EXPECT_EQ(seconds(R"("validation": 1)"), (Costs{0, 1, 0, 0}));
  EXPECT_EQ(seconds(R"("framework": 1)"), (Costs{0, 0, 1, 0}));
  EXPECT_EQ(seconds(R"("compilation_time": 1, "validation_time": 2, "framework_time": 3)"),
            (Costs{1, 2, 3, 0}));
  EXPECT_EQ(seconds(R"("compilation": 4, "compilation_time": 1)"), (Costs{4, 0, 0, 0}))
      << "the schema's own name first";
  EXPECT_EQ(seconds(R"("compilation": "n/a", "compilation_time": 1, "framework": null)"),
            (Costs{1, 0, 0, 0}));
  EXPECT_EQ(seconds(R"("runtimes": [2, 3])"), (Costs{0, 0, 0, 5}));
  EXPECT_THAT(result(R"(, "times": {"compilation": 1})").run_seconds, SizeIs(1));
  EXPECT_THAT(result(R"(, "times": {"runtimes": [2]})").compile_seconds, SizeIs(1));
  for (const char* none : {"", R"(, "times": {})", R"(, "times": {"runtimes": []})",
                           R"(, "times": {"runtimes": ["x"]})", R"(, "times": {"compilation": "x"})"}) {
    const Recording r = result(none);
    EXPECT_THAT(r.compile_seconds, IsEmpty()) << none;
    EXPECT_THAT(r.columns, IsEmpty()) << none;
  }
}

TEST_F(T4, RunTimesAreATimeWithItsErrorBesideTheMeasured) {
  const Measurement alone = of(R"(, "times": {"runtimes": [2, 4, 6, "x"]})");
  EXPECT_DOUBLE_EQ(alone.quantities.at("time").value, 4e-3);
  EXPECT_EQ(alone.quantities.at("time").n, 3);
  EXPECT_NEAR(alone.quantities.at("time").standard_error, 2e-3 / std::sqrt(3.0), 1e-9);
  EXPECT_FLOAT_EQ(static_cast<float>(alone.measure_seconds), 12e-3f);
  const Measurement both =
      of(R"(, "times": {"runtimes": [2, 4, 6]}, "measurements": [{"name": "time", "value": 5}])");
  EXPECT_DOUBLE_EQ(both.quantities.at("time").value, 5e-3);
  EXPECT_EQ(both.quantities.at("time").n, 3);
}

TEST_F(T4, ListsAreReadingsOfTheirSingular) {
  const Measurement m = of(
      R"(, "measurements": [{"name": "nvml_powers", "value": [100, "x", 110], "unit": "W"}, {"name": "miss", "value": [3]},
      {"name": "pace", "value": [1, 3]},
      {"name": "words", "value": ["x"]}, {"name": "none", "value": []}, {"name": "word", "value": "x"},
      {"name": "mJs", "value": [2, 4], "unit": "mJ"}])");
  EXPECT_DOUBLE_EQ(m.quantities.at("power").value, 105);
  EXPECT_EQ(m.quantities.at("power").n, 2);
  EXPECT_NEAR(m.quantities.at("power").standard_error, 5, 1e-6);
  EXPECT_EQ(m.metrics, (std::map<std::string, double>{{"mis", 3}, {"pace", 2}, {"mJ", 3e-3}}));
  EXPECT_NEAR(m.metric_errors.at("pace"), 1, 1e-6);
  EXPECT_EQ(m.metric_errors.count("mis"), 0u) << "one reading has no error";
}

TEST_F(T4, ABareNameIsAMetricWithoutAUnitAndAQuantityWithOne) {
  for (const char* name : {"energy", "power", "own"}) {
    const std::string begin = R"(, "measurements": [{"name": ")" + std::string(name) + R"(", "value": 3)";
    EXPECT_THAT(of(begin + "}]").metrics, SizeIs(1)) << name;
    const Measurement m = of(begin + R"(, "unit": "J"}])");
    EXPECT_THAT(m.quantities, SizeIs(std::string(name) == "own" ? 0 : 1)) << name;
  }
}

TEST_F(T4, WhatTheFileDoesNotSayIsLeftOpen) {
  const Recording bare = result();
  EXPECT_EQ(bare.name, "k") << "the file's name up to its first dot";
  EXPECT_EQ(bare.device, "");
  EXPECT_EQ(bare.objective.text, "time");
  EXPECT_THAT(bare.warnings, IsEmpty());
  const Recording named = result("", R"(, "metadata": {"kernel": "gemm", "device": "D"})");
  EXPECT_EQ(named.name + " " + named.device, "gemm D");
  for (const char* objectives : {"[]", "[3]", R"([["energy"]])"})
    EXPECT_EQ(result(R"(, "objectives": )" + std::string(objectives)).objective.text, "time") << objectives;
  EXPECT_EQ(result(R"(, "objectives": ["own", "time"])").objective.text, "own");
}

TEST_F(T4, AnObjectiveKeepsItsColumn) {
  const auto objective = [&](const std::string& wanted, const std::string& names) {
    return result(R"(, "objectives": [")" + wanted + R"("], "measurements": [)" + names + "]").objective.text;
  };
  const std::string nvml = R"({"name": "nvml_energy", "value": 7})",
                    meter = R"({"name": "ps_energy", "value": 8})";
  EXPECT_EQ(objective("nvml_energy", nvml), "energy") << "its column is called so now";
  EXPECT_EQ(objective("nvml_energy", nvml + "," + meter), "nvml_energy") << "the meter's is the energy";
  EXPECT_EQ(objective("ps_energy", nvml + "," + meter), "energy");
  EXPECT_EQ(objective("nvml_energy", meter), "energy") << "in no result: by its name";
  const Recording remark = result(R"(, "measurements": [{"name": "energy", "value": 3}, )" + meter + "]");
  EXPECT_THAT(remark.warnings, testing::ElementsAre(HasSubstr("energy_metric")));
}

TEST_F(T4, AnUnknownInvalidityIsAFailureOfTheRun) {
  EXPECT_EQ(
      read("s.json", R"({"results": [{"configuration": {"b": 1}, "invalidity": "elephants"}]})").statuses[0],
      Status::runtime_error);
  EXPECT_EQ(complaint("s.json", R"({"results": []})"), "s.json: this T4 file has no results");
  EXPECT_THAT(complaint("s.json", R"({"results": [{"configuration": {"b": 1}}]})"),
              HasSubstr("s.json: this is no T4 file as its schema describes it: "));
  EXPECT_THAT(
      complaint(
          "s.json",
          R"({"results": [{"configuration": {"b": 1}, "invalidity": "correct"}, {"configuration": {}, "invalidity": "correct"}]})"),
      HasSubstr("no T4 file"));
}

}  // namespace
}  // namespace ergotune
