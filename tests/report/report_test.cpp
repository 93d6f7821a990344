#include "ergotune/report/report.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ergotune/base/error.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCache = R"({
"device_name": "Some <GPU>", "kernel_name": "k</script>", "problem_size": 1,
"tune_params_keys": ["a", "b"], "tune_params": {"a": [1, 2, 4], "b": [0, 1]}, "objective": "time",
"cache": {
"1,0": {"a": 1, "b": 0, "time": 4.0, "times": [4.0, 4.1, 3.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"1,1": {"a": 1, "b": 1, "time": "RuntimeFailedConfig", "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"2,0": {"a": 2, "b": 0, "time": 2.0, "times": [2.0, 2.1, 1.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"4,1": {"a": 4, "b": 1, "time": 3.0, "times": [3.0, 3.1, 2.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1}}
})";

class Report : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ergotune-report-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "cache.json") << kCache;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string page() {
    std::ifstream in(folder_ / "report.html");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  nlohmann::json data() {
    const std::string text = page();
    const std::string mark = "id=\"data\">";
    const auto begin = text.find(mark) + mark.size();
    return nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  }

  std::filesystem::path folder_;
};

TEST_F(Report, TellsBestMedianDefaultAndFailures) {
  const auto summary = write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_EQ(summary.configurations, 4u);
  EXPECT_EQ(summary.failed, 1u);
  const auto document = data();
  EXPECT_DOUBLE_EQ(document["best"]["v"].get<double>(), 0.002);  // ms became s
  EXPECT_DOUBLE_EQ(document["median"]["v"].get<double>(), 0.003);
  EXPECT_DOUBLE_EQ(document["default_row"]["v"].get<double>(), 0.004);
  EXPECT_GT(document["best"]["e"].get<double>(), 0);
  EXPECT_EQ(document["failures"][0]["status"], "runtime_error");
  EXPECT_EQ(document["failures"][0]["configuration"], "a=1, b=1");
  EXPECT_EQ(document["convergence"], nlohmann::json::parse("[[1,0.004],[3,0.002],[4,0.002]]"));
  EXPECT_EQ(document["top"].size(), 3u);
}

TEST_F(Report, IsOnePageThatLoadsNothing) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  const std::string text = page();
  EXPECT_THAT(text, Not(HasSubstr("<script src")));
  EXPECT_THAT(text, Not(HasSubstr("<link")));
  EXPECT_THAT(text, Not(HasSubstr("@DATA@")));
  EXPECT_THAT(text, HasSubstr("Chart.js"));
  EXPECT_EQ(data()["provenance"], "replayed");
}

// Top-level functions of a page's script become properties of the window, and "top" cannot be one.
TEST_F(Report, TheScriptKeepsItsNamesToItself) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_THAT(page(), HasSubstr("'use strict';\n{"));
}

TEST_F(Report, DataCannotEndTheScriptElement) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_EQ(data()["problem"], "k</script>");
  EXPECT_THAT(page(), HasSubstr("<title>ergotune report: k&lt;/script&gt;</title>"));
}

TEST_F(Report, SaysWhatIsWrong) {
  EXPECT_THROW(write_report(folder_ / "none.db", 0, folder_ / "report.html"), UserError);
  EXPECT_THROW(write_report(folder_ / "cache.json", 0, folder_ / "no/such/folder/report.html"), UserError);
}

}  // namespace
}  // namespace ergotune
