// Hardware counters: the command's answers by the host side of the real CUPTI, which needs no GPU (pip package
// nvidia-cuda-cupti-cu12), and what the manual says of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "problem/tables/counter_names.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const std::string kCupti = ERGOTUNE_BINARY_DIR "/tests/fakes/cupti/libcupti.so.13";

TEST(CounterNames, UnitsFollowFromNames) {
  EXPECT_EQ(unit_of("dram_read_throughput"), "B/s");
  EXPECT_EQ(unit_of("dram__bytes_read.sum"), "B");
  EXPECT_EQ(unit_of("dram__bytes_read.sum.per_second"), "B/s");
  EXPECT_EQ(unit_of("dram__throughput.avg.pct_of_peak_sustained_elapsed"), "");
  EXPECT_EQ(unit_of("gpu__time_duration.sum"), "ns");
  EXPECT_FALSE(must_be_positive("dram_read_bytes")) << "a kernel may read nothing";
  for (const CounterInfo& counter : counter_names()) {
    EXPECT_FALSE(is_chip_metric(counter.name));
    for (const std::string& metric : metrics_behind(std::string(counter.name)))
      EXPECT_TRUE(is_chip_metric(metric)) << metric;
  }
}

TEST(CounterNames, TheManualHoldsThemAll) {
  std::ifstream file(ERGOTUNE_SOURCE_DIR "/docs/counters.md");
  const std::string manual((std::istreambuf_iterator<char>(file)), {});
  for (const CounterInfo& counter : counter_names()) {
    std::string metrics;
    for (const std::string& metric : metrics_behind(std::string(counter.name)))
      metrics += (metrics.empty() ? "`" : ", `") + metric + "`";
    EXPECT_THAT(manual, HasSubstr(fmt::format("| `{}` | {} | {} | {} |", counter.name, counter.unit, counter.meaning,
                                              metrics)));
  }
  for (const PerfCounterInfo& counter : perf_counter_names())
    EXPECT_THAT(manual, HasSubstr(fmt::format("| `{}` | {} | {} | {} |", counter.name, counter.unit, counter.meaning,
                                              counter.hardware ? "processor" : "system")));
}

/// The real library's host side, in the command.
class CuptiHostSide : public testing::Test {
 protected:
  void SetUp() override {
    const std::string python = environment_variable("VIRTUAL_ENV");
    const std::filesystem::path packages(python.empty() ? ERGOTUNE_SOURCE_DIR "/build/venv" : python);
    for (const auto& version : std::filesystem::directory_iterator(packages / "lib"))
      if (const auto file = version.path() / "site-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
          std::filesystem::exists(file))
        library_ = file.string();
    if (library_.empty())
      GTEST_SKIP() << "needs CUPTI: pip package nvidia-cuda-cupti-cu12==12.9.* in " << packages.string();
  }
  ProcessResult ask(std::vector<std::string> strings) const {
    strings.insert(strings.begin(), {ERGOTUNE_BINARY_DIR "/ergotune", "counters"});
    ProcessOptions options;
    options.environment = {{"ERGOTUNE_CUPTI", library_}, {"ERGOTUNE_CUDA", "/nonexistent/libcuda.so.1"}};
    return run_process(strings, options);
  }
  std::string library_;
};

TEST_F(CuptiHostSide, CountsPassesOfTheUsualTwenty) {
  for (const char* chip : {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100"}) {
    const ProcessResult result = ask({"check", "--device", chip, "--json"});
    ASSERT_TRUE(result.ok()) << result.err;
    const auto document = nlohmann::json::parse(result.out);
    EXPECT_EQ(document["passes"], 2) << chip;
    EXPECT_EQ(document["counters"].size(), 20u) << chip;
    EXPECT_EQ(document["cupti"]["version"], "12.9");
    EXPECT_EQ(document["permitted"], nullptr) << "nobody was asked";
  }
  const auto geforce = nlohmann::json::parse(ask({"check", "--device", "sm_120", "--json"}).out);
  EXPECT_THAT(geforce["missing"].get<std::vector<std::string>>(), Contains("dram_read_bytes"));
}

TEST_F(CuptiHostSide, EveryCounterOfOursIsKnownToAnH100) {
  const auto document = nlohmann::json::parse(ask({"list", "--device", "sm_90", "--json"}).out);
  EXPECT_EQ(document["chip"], "GH100");
  EXPECT_EQ(document["counters"].size(), counter_names().size());
  for (const auto& counter : document["counters"]) EXPECT_EQ(counter["available"], true) << counter["name"];
}

TEST_F(CuptiHostSide, AWrongNameIsRefusedWithWhatIsNear) {
  const ProcessResult result = ask({"check", "ipc", "dram__bytes_raed.sum", "--device", "sm_90"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("\"dram__bytes_read.sum\""));
}

TEST(CountersCommand, ALibraryThatEndsItsProcessIsNamed) {
  ProcessOptions options;
  // any library that is no CUPTI will do for the first; the second ends whoever asks
  options.environment = {{"ERGOTUNE_CUPTI", "/nonexistent/libcupti.so.12"}};
  const ProcessResult none =
      run_process({ERGOTUNE_BINARY_DIR "/ergotune", "counters", "check", "--device", "sm_90"}, options);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("nvidia-cuda-cupti"), HasSubstr("ERGOTUNE_CUPTI")));
  options.environment = {{"ERGOTUNE_CUPTI", kCupti}, {"FAKE_CUPTI_FAIL", "cuptiProfilerHostInitialize=crash"}};
  const ProcessResult crashed =
      run_process({ERGOTUNE_BINARY_DIR "/ergotune", "counters", "check", "--device", "sm_90"}, options);
  EXPECT_EQ(crashed.exit_code, 2);
  EXPECT_THAT(crashed.err, HasSubstr("signal 6"));
}

}  // namespace
}  // namespace ergotune
