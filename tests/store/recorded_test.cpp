// A recording's rows as measurements and as results, and the problem file that lies beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/store/export.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Recording two_rows() {
  Recording r;
  r.name = "k";
  r.device = "D";
  r.objective = {"gain", Direction::maximise};
  r.parameters.resize(2);
  r.parameters[0].values = {1, 2};
  r.parameters[1].values = {"a", "b", "c"};
  r.positions = {1, 2, 0, 1};
  r.statuses = {Status::ok, Status::timeout};
  r.messages[1] = "slow";
  r.columns.push_back({"time", {0.5, NAN}, {0.25f, 0}, {3, 1}, false});
  r.columns.push_back({"once", {7, 8}, {}, {}, false});
  r.columns.push_back({"gain", {4, 5}, {0.5f, 0}, {}, true});
  r.columns.push_back({"plain", {6, NAN}, {}, {}, true});
  r.metrics = {{"gain", Expression::parse("1/time"), "x"}};
  return r;
}

TEST(Recorded, ARowIsAMeasurement) {
  const Recording r = two_rows();
  const Measurement first = r.measurement(0), second = r.measurement(1);
  EXPECT_EQ(first.status, Status::ok);
  EXPECT_EQ(first.message, "");
  EXPECT_EQ(first.quantities.size(), 2u);
  EXPECT_EQ(first.quantities.at("time").value, 0.5);
  EXPECT_EQ(first.quantities.at("time").standard_error, 0.25);
  EXPECT_EQ(first.quantities.at("time").n, 3);
  EXPECT_EQ(first.quantities.at("once").value, 7);
  EXPECT_EQ(first.quantities.at("once").standard_error, 0);
  EXPECT_EQ(first.quantities.at("once").n, 1);
  EXPECT_EQ(first.quantities.at("once").provenance, Provenance::replayed);
  EXPECT_EQ(first.metrics, (std::map<std::string, double>{{"gain", 4}, {"plain", 6}}));
  EXPECT_EQ(first.metric_errors, (std::map<std::string, double>{{"gain", 0.5}}));
  EXPECT_EQ(first.compile_seconds + first.verify_seconds + first.measure_seconds + first.tuner_seconds, 0)
      << "not recorded";
  EXPECT_EQ(second.message, "slow");
  EXPECT_EQ(second.quantities.size(), 1u);
  EXPECT_EQ(second.metrics, (std::map<std::string, double>{{"gain", 5}}));
  EXPECT_THAT(second.metric_errors, IsEmpty());
}

TEST(Recorded, AsResultsItHasTheSameRows) {
  const ResultSet results = result_set(two_rows());
  EXPECT_EQ(results.problem + results.kernel + results.device + results.objective, "kkDgain");
  EXPECT_EQ(results.goal.direction, Direction::maximise);
  EXPECT_EQ(results.provenance, Provenance::replayed);
  EXPECT_EQ(results.metrics.size(), 1u);
  ASSERT_EQ(results.rows.size(), 2u);
  EXPECT_EQ(results.rows[0].configuration, (Configuration{2, "c"}));
  EXPECT_EQ(results.rows[1].configuration, (Configuration{1, "b"}));
  EXPECT_EQ(results.rows[0].id, 0);
  EXPECT_EQ(results.rows[1].id, 1);
  EXPECT_EQ(results.rows[1].measurement.message, "slow");
  ASSERT_EQ(results.parameters.size(), 2u);
  EXPECT_THAT(results.parameters[1].values, ElementsAre("a", "b", "c"));
}

class BesideT1 : public WrittenFiles {
 protected:
  /// A T1 file of integer parameters 1 and 2 with these defaults (0: none), and one condition that names it.
  void t1(const std::string& name, const std::vector<std::pair<std::string, int>>& parameters,
          int limit = 9) {
    std::string list;
    for (const auto& [parameter, preset] : parameters)
      list += (list.empty() ? "" : ",") +
              (R"({"Name": ")" + parameter + R"(", "Type": "int", "Values": "[1, 2]")") +
              (preset ? ", \"Default\": " + std::to_string(preset) : "") + "}";
    const std::string first = parameters.front().first;
    write(name, R"({"ConfigurationSpace": {"TuningParameters": [)" + list +
                    R"(], "Conditions": [{"Expression": ")" + first + " < " + std::to_string(limit) +
                    R"(", "Parameters": [")" + first + R"("]}]}})");
  }
  static std::string cache(const std::string& kernel, const std::string& parameter = "b") {
    return R"({"kernel_name": ")" + kernel + R"(", "tune_params_keys": [")" + parameter +
           R"(", "c"], "tune_params": {")" + parameter +
           R"(": [1, 2], "c": [1, 2]}, "cache": {
"1": {")" + parameter +
           R"(": 1, "c": 2}}})";
  }
  std::string restriction(const std::string& name, const std::string& text) {
    const Recording r = read(name, text);
    return r.restrictions.empty() ? "none" : r.restrictions[0].expression.text();
  }
};

TEST_F(BesideT1, ItIsFoundByTheFilesOrTheKernelsName) {
  t1("gemm.T1.json", {{"b", 2}, {"c", 1}}, 7);
  EXPECT_EQ(restriction("gemm_A.json", cache("other")), "b < 7") << "the file's name begins so";
  EXPECT_EQ(restriction("x.json", cache("gemm_kernel")), "b < 7") << "the kernel's does";
  EXPECT_EQ(restriction("x.json", cache("a_gemm")), "none");
  EXPECT_EQ(restriction("gem.json", cache("g")), "none");
  t1("gemm_A.T1.json", {{"b", 2}, {"c", 1}}, 8);
  EXPECT_EQ(restriction("gemm_A.json", cache("gemm_kernel")), "b < 8") << "the longer name";
  EXPECT_EQ(restriction("gemm_B.json", cache("gemm_kernel")), "b < 7");
}

TEST_F(BesideT1, AFileWithoutAKernelsNameBelongsToNone) {
  t1(".T1.json", {{"b", 2}, {"c", 1}});
  t1("T1.json", {{"b", 2}, {"c", 1}});
  t1("x.T1.json.old", {{"b", 2}, {"c", 1}});
  const Recording r = read("x.json", cache("k"));
  EXPECT_FALSE(r.restrictions_known);
  EXPECT_THAT(r.warnings, IsEmpty());
}

TEST_F(BesideT1, EachParameterTakesItsOwnDefault) {
  t1("k.T1.json", {{"b", 2}, {"c", 0}, {"d", 1}});
  const Recording r = read("k.json", cache("k"));
  EXPECT_TRUE(r.restrictions_known);
  EXPECT_EQ(r.parameters[0].default_value, Value(2));
  EXPECT_EQ(r.parameters[1].default_value, std::nullopt);
  t1("k.T1.json", {{"b", 1}, {"c", 2}});
  const Recording both = read("k.json", cache("k"));
  EXPECT_EQ(both.parameters[0].default_value, Value(1));
  EXPECT_EQ(both.parameters[1].default_value, Value(2));
}

TEST_F(BesideT1, ClocksAndLimitsNeedNotStandInIt) {
  t1("k.T1.json", {{"c", 2}}, 5);
  EXPECT_EQ(restriction("k.json", cache("k", "nvml_gr_clock")), "c < 5");
  const Recording other = read("k.json", cache("k", "b"));
  EXPECT_THAT(other.restrictions, IsEmpty());
  EXPECT_THAT(other.warnings,
              ElementsAre("k.T1.json lies beside it but has other parameters; it is not used"));
  write("k.T1.json", "{");
  EXPECT_THAT(read("k.json", cache("k")).warnings,
              ElementsAre(HasSubstr("k.T1.json lies beside it and cannot be read: ")));
}

}  // namespace
}  // namespace ergotune
