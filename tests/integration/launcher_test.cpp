// An application goes from untuned to tuned: launched, captured, tuned, launched with wisdom. And what the launcher's
// library is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "integration/support/command.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPrograms = ERGOTUNE_BINARY_DIR "/tests/application/";

struct Heat : testing::Test {
  TemporaryFolder folder;
  void SetUp() override {
    if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  }
  ProcessOptions options(std::map<std::string, std::string> environment) const {
    ProcessOptions options;
    options.folder = folder.path().string();
    options.timeout = 100;
    options.environment = std::move(environment);
    options.environment["XDG_CACHE_HOME"] = (folder.path() / "cache").string();
    return options;
  }
  std::string run(const std::string& program, std::map<std::string, std::string> environment = {}) const {
    const ProcessResult result = run_process({kPrograms + program, "96", "80", "6"}, options(std::move(environment)));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out + result.err;
  }
  static std::string sum_of(const std::string& output) {
    std::smatch match;
    return std::regex_search(output, match, std::regex("sum ([0-9.]+)")) ? match[1].str() : "none in: " + output;
  }
};

TEST_F(Heat, GoesFromUntunedToTunedThroughCaptureTuneAndWisdom) {
  const std::string right = sum_of(run("heat"));
  EXPECT_THAT(run("heat_tuned", {{"ERGOTUNE_CAPTURE", "heta"}}), HasSubstr("(heat)")) << "the name that it has";
  const std::string untuned = run("heat_tuned", {{"ERGOTUNE_CAPTURE", "heat"}});
  EXPECT_EQ(sum_of(untuned), right);
  EXPECT_THAT(untuned, HasSubstr("captured in captured/heat_96x80: ergotune tune captured/heat_96x80 --wisdom wisdom"));
  const auto tuned = ergotune(folder, {"tune", "captured/heat_96x80", "--wisdom", "wisdom", "--budget", "4",
                                       "--strategy", "random", "--no-confirm", "--device", "opencl", "--json", "-q"});
  const auto best = json_of(tuned)["best"]["configuration"];
  const std::string after = run("heat_tuned", {{"ERGOTUNE_WISDOM", "wisdom"}});
  EXPECT_EQ(sum_of(after), right);
  const auto why = nlohmann::json::parse(after.substr(after.find('{')));
  EXPECT_EQ(why["configuration"], best);
  EXPECT_EQ(why["match"], "exact");
  EXPECT_EQ(why["is_default"], false);
}

// As docs/launcher.md shows, with a bound that pays for PoCL's compilation of the first launches. The launches must
// last until a configuration was compiled beside them: on a busy machine that takes more of them.
TEST_F(Heat, IsTunedOnlineByItsOwnLaunches) {
  const auto launched = [&](const std::string& program, const std::string& steps) {
    const ProcessResult result =
        run_process({kPrograms + program, "512", "512", steps},
                    options({{"ERGOTUNE_ONLINE", "20"}, {"ERGOTUNE_WISDOM", (folder.path() / "wisdom").string()}}));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  };
  nlohmann::json why;
  for (const char* steps : {"10000", "40000", "160000"}) {
    const std::string tuned = launched("heat_tuned", steps);
    EXPECT_EQ(sum_of(tuned), sum_of(launched("heat", steps)));
    why = nlohmann::json::parse(tuned.substr(tuned.find('{')));
    if (why.contains("online") && why["online"]["tried"] > 0) break;
  }
  ASSERT_TRUE(why.contains("online")) << why;
  EXPECT_GT(why["online"]["tried"], 0) << why;
}

TEST_F(Heat, TwoProcessesBeginAtOnceWithNothingCompiled) {
  const auto again = options({});
  ChildProcess first = ChildProcess::start({kPrograms + "heat_tuned", "96", "80", "6"}, again);
  const std::string second = run("heat_tuned");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(sum_of(second), sum_of(run("heat")));
}

TEST_F(Heat, RunsWhateverFailsBelowIt) {
  const std::string right = sum_of(run("heat"));
  run("heat_tuned", {{"ERGOTUNE_CAPTURE", "heat"}});
  ASSERT_EQ(ergotune(folder, {"tune", "captured/heat_96x80", "--wisdom", "wisdom", "--budget", "1", "--strategy",
                              "random", "--no-confirm", "--device", "opencl", "-q"})
                .exit_code,
            0);
  std::vector<std::string> all{"call=look,nth=1,error=13,path=.wisdom,stays"};
  for (const char* stays : {"", ",stays"})
    for (const char* call :
         {"read,nth=1,error=5,path=.wisdom", "open,nth=1,error=28,path=compiled", "read,nth=1,error=0,path=.wisdom",
          "look,nth=1,error=24,path=compiled", "write,nth=1,error=28,path=compiled",
          "rename,nth=1,error=5,path=compiled", "read,nth=1,error=5,path=compiled"})
      all.push_back(fmt::format("call={}{}", call, stays));
  int fired = 0, went_on = 0;
  for (const std::string& fault : chosen_faults(all, 5)) {
    std::filesystem::remove_all(folder.path() / "cache" / "ergotune");
    const Fault shim(folder, fault);
    const std::string output = run("heat_tuned", {{"ERGOTUNE_WISDOM", "wisdom"}});
    EXPECT_EQ(sum_of(output), right) << fault << output;
    // a first look at the header that fails is followed by another
    const bool unread = fault.find(".wisdom") != std::string::npos && fault.find("error=0") == std::string::npos &&
                        fault.find("stays") != std::string::npos;
    EXPECT_EQ(output.find("ergotune: ") != std::string::npos, unread) << fault << output;
    ++went_on;
    fired += shim.fired();
  }
  EXPECT_GT(fired, 2);
  std::printf("%d calls failed; %d commands went on, 0 said why not\n", fired, went_on);
}

// What is only there for tuning is not in an application.
TEST(LauncherLibrary, HoldsNothingThatOnlyTuningNeeds) {
  const std::string library = ERGOTUNE_BINARY_DIR "/libergotune-launcher.so";
  const std::string needed = run_process({"ldd", library}).out;
  for (const char* unwanted : {"sqlite", "simdjson", "libz", "python"}) EXPECT_THAT(needed, Not(HasSubstr(unwanted)));
  const std::string symbols = run_process({"nm", "--demangle", library}).out;
  ASSERT_THAT(symbols, HasSubstr("TunedKernel"));
  for (const char* unwanted : {"sqlite3_", "simdjson", "CLI::", "ergotune::Store", "Ledger"})
    EXPECT_THAT(symbols, Not(HasSubstr(unwanted)));
  std::string seen = run_process({"nm", "--dynamic", "--defined-only", library}).out;
  for (std::smatch match; std::regex_search(seen, match, std::regex(" [A-Z] (.*)\n")); seen = match.suffix())
    EXPECT_THAT(match[1].str(), testing::StartsWith("ergotune_"));
}

}  // namespace
}  // namespace ergotune::test
