// Wisdom from tuning to the answer that an application is given, driven from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* kKernel = R"(
name = "scaling"
[constants]
n = 4096
[parameters]
block = [16, 32, 64]
work = [1, 2]
[kernel]
function = "scale"
source = "scale.cl"
arguments = [
  { name = "count", type = "int32", value = "n" },
  { name = "a", type = "float32", count = "n", access = "read_write" },
]
[kernel.launch]
global = ["n // work"]
block = ["block"]
[metrics]
rate = "n / time"
)";
const char* kSource =
    "kernel void scale(int count, global float* a) { for (int i = get_global_id(0) * work; i < (get_global_id(0) + 1) "
    "* work; ++i) if (i < count) a[i] = a[i] * 2.0f; }\n";

struct Tuned : testing::Test {
  TemporaryFolder folder;
  void SetUp() override {
    folder.write("p.toml", kKernel);
    folder.write("scale.cl", kSource);
    const auto result = ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--strategy", "brute_force",
                                          "--wisdom", "w", "-q", "--json"});
    const auto document = json_of(result);
    best = document["best"]["configuration"];
    gain = document["gain"];
  }
  nlohmann::json why(std::vector<std::string> more) {
    std::vector<std::string> strings{"wisdom", "why", "w", "scale", "--json"};
    strings.insert(strings.end(), more.begin(), more.end());
    return json_of(ergotune(folder, strings));
  }
  nlohmann::json best, gain;
};

TEST_F(Tuned, TheDefaultIsNoWinnerWhereNothingElseWasMeasured) {
  const std::vector<std::string> one{"tune", "p.toml", "--device", "sim:a100", "--store", "o.db", "--wisdom", "o"};
  const auto tune = [&](const std::string& budget) {
    std::vector<std::string> strings = one;
    strings.insert(strings.end(), {"--budget", budget});
    EXPECT_EQ(ergotune(folder, strings).exit_code, 0);
    return !std::filesystem::is_empty(folder.path() / "o");
  };
  EXPECT_FALSE(tune("1"));
  EXPECT_TRUE(tune("6"));
}

TEST_F(Tuned, TheWinnerIsWhatAnApplicationIsGiven) {
  const std::string device = "simulated NVIDIA A100-PCIE-40GB";
  auto answer = why({"--device", device, "--size", "4096", "--problem", "p.toml"});
  EXPECT_EQ(answer["configuration"], best);
  const std::string text = *read_file(folder.path() / "w/scale.wisdom");
  const auto kept = nlohmann::json::parse(text.substr(text.find('\n') + 1))["quantities"]["gain_over_default"];
  EXPECT_DOUBLE_EQ(kept["value"], gain["value"]);
  EXPECT_NEAR(1.96 * kept["standard_error"].get<double>(), gain["half_width"], 1e-3 * gain["half_width"].get<double>());
  EXPECT_EQ(answer["distance"], 0);
  EXPECT_EQ(answer["match"], "exact");
  EXPECT_THAT(answer["reason"].get<std::string>(), HasSubstr("simulated"));
  answer = why({"--device", device, "--size", "16384"});
  EXPECT_EQ(answer["distance"], 2);
  answer = why({"--device", "NVIDIA A100-PCIE-40GB", "--size", "4096"});
  EXPECT_EQ(answer["match"], "default") << "a simulated result is no advice for a real device";
  EXPECT_THAT(answer["reason"].get<std::string>(), HasSubstr("simulated"));
  answer = why({"--device", "AMD Instinct MI300X", "--backend", "hip", "--size", "4096", "--problem", "p.toml"});
  EXPECT_EQ(answer["match"], "default");
  EXPECT_EQ(answer["configuration"], nlohmann::json({{"block", 16}, {"work", 1}}));
  EXPECT_TRUE(answer["distance"].is_null());
  // What the launcher would not launch is not the answer: this block at this size. What is not known of the device is
  // not asked.
  folder.write("p.toml", "restrictions = [\"n > 8192 or block != " + best["block"].dump() +
                             "\", \"block <= device.max_threads_per_block\"]\n" + kKernel);
  answer = why({"--device", device, "--size", "4096", "--problem", "p.toml"});
  EXPECT_EQ(answer["match"], "default");
  EXPECT_THAT(answer["reason"].get<std::string>(), HasSubstr("it does not meet"));
  EXPECT_NE(answer["configuration"]["block"], best["block"]);
  EXPECT_EQ(why({"--device", device, "--size", "16384", "--problem", "p.toml"})["configuration"], best);
  EXPECT_EQ(ergotune(folder, {"wisdom", "check", "w", "--problem", "p.toml"}).exit_code, 1)
      << "at its own size it could not be launched";
}

TEST_F(Tuned, ASimulatedResultNeverBecomesAMeasuredOne) {
  const std::string device = "NVIDIA A100-PCIE-40GB";
  EXPECT_EQ(ergotune(folder, {"wisdom", "export", "w", "--format", "kernel-launcher", "-o", "kl"}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "kl"));
  std::filesystem::create_directory(folder.path() / "kl");
  folder.write("kl/scale.wisdom",
               "{\"version\":\"1.0\",\"objective\":\"time\",\"tunable_parameters\":[\"block\",\"work\"],\"key\":"
               "\"scale\"}\n{\"config\":[16,1],\"problem_size\":[4096],\"time\":1,\"environment\":{\"device_name\":"
               "\"simulated " +
                   device + "\"}}\n");
  EXPECT_EQ(ergotune(folder, {"wisdom", "merge", "kl", "-o", "merged"}).exit_code, 0);
  EXPECT_EQ(ergotune(folder, {"export", "ergotune.db", "--format", "t4", "-o", "r.t4"}).exit_code, 0);
  EXPECT_EQ(ergotune(folder, {"import", "r.t4", "--store", "i.db", "--device", device}).exit_code, 0);
  EXPECT_EQ(ergotune(folder, {"export", "i.db", "--format", "wisdom", "-o", "renamed"}).exit_code, 0);
  for (const auto& [wisdom, kernel] : {std::pair("merged", "scale"), std::pair("renamed", "scaling")}) {
    EXPECT_EQ(json_of(ergotune(folder, {"wisdom", "list", wisdom, "--json"}))["records"][0]["provenance"], "simulated");
    EXPECT_EQ(json_of(ergotune(folder, {"wisdom", "why", wisdom, kernel, "--device", device, "--json"}))["match"],
              "default")
        << wisdom;
  }
}

TEST_F(Tuned, WhyTakesADeviceThatIsHereAndRefusesOtherKernels) {
  const auto named = [&](std::vector<std::string> more) { return why(std::move(more))["reason"].get<std::string>(); };
  const std::string processor = json_of(ergotune(folder, {"devices", "--json"}))["devices"].back()["name"];
  EXPECT_THAT(named({"--device", "host"}), HasSubstr(processor));
  EXPECT_NE(named({}), "") << "without --device it is the one that tune takes";
  const auto refused = ergotune(folder, {"wisdom", "why", "w", "scalle", "--device", "host"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("scale"));
}

TEST_F(Tuned, WhyTakesASimulatedDeviceAndAsManySizesAsTheRecordHas) {
  EXPECT_EQ(why({"--device", "sim:a100", "--size", "4096"})["match"], "exact");
  const auto refused = ergotune(folder, {"wisdom", "why", "w", "scale", "--device", "sim:a100", "--size", "4096,1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(": n\n"));
  EXPECT_THAT(ergotune(folder, {"wisdom", "list", "w"}).out, HasSubstr("n=4096"));
}

TEST_F(Tuned, ValuesOfARoundAreMarked) {
  EXPECT_FALSE(why({"--device", "sim:a100"})["record"].contains("of_round"));
  folder.write("two.toml", R"(
[constants]
n = 256
[kernels.first]
function = "first"
parameters = { tile = [1, 2] }
launch = { grid = ["n"], block = [64] }
[kernels.second]
function = "second"
parameters = { tile = [1, 2] }
launch = { grid = ["n"], block = [64] }
[simulation]
flops = "2 * n**3"
bytes = "4 * n**2"
)");
  ASSERT_EQ(ergotune(folder, {"tune", "two.toml", "--device", "sim:a100", "-q", "--wisdom", "two"}).exit_code, 0);
  const auto records = json_of(ergotune(folder, {"wisdom", "list", "two", "--json"}))["records"];
  EXPECT_EQ(records.size(), 2u);
  for (const auto& record : records) EXPECT_EQ(record["of_round"], true);
  EXPECT_THAT(ergotune(folder, {"wisdom", "list", "two"}).out, HasSubstr("a round"));
}

TEST_F(Tuned, ExportSaysTheSameAndAddsNothingTwice) {
  const auto first = json_of(ergotune(folder, {"export", "ergotune.db", "--format", "wisdom", "-o", "w", "--json"}));
  EXPECT_EQ(first["files"][0]["added"], 0) << "tune has written it already";
  const auto records = json_of(ergotune(folder, {"wisdom", "list", "w", "--json"}))["records"];
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["configuration"], best);
  EXPECT_EQ(records[0]["problem_size"], nlohmann::json({4096}));
  EXPECT_EQ(records[0]["provenance"], "simulated");
  EXPECT_TRUE(records[0]["quantities"].contains("rate"));
  EXPECT_EQ(ergotune(folder, {"tune", "p.toml", "--no-store", "--wisdom", "w"}).exit_code, 2);
  const auto refused = ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--wisdom", "/proc/nothing"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("cannot be written here"), Not(HasSubstr("Tuning"))))
      << "before anything is measured";
}

TEST_F(Tuned, AChangedSourceMakesItStaleAndACommentDoesNot) {
  EXPECT_EQ(ergotune(folder, {"wisdom", "check", "w", "--problem", "p.toml"}).exit_code, 0);
  folder.write("scale.cl", "// a word\n" + std::string(kSource));
  EXPECT_EQ(ergotune(folder, {"wisdom", "check", "w", "--problem", "p.toml"}).exit_code, 0);
  folder.write("scale.cl", "#define MORE 1\n" + std::string(kSource));
  const auto checked = ergotune(folder, {"wisdom", "check", "w", "--problem", "p.toml", "--json"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr("stale"));
  const auto answer = why({"--device", "simulated NVIDIA A100-PCIE-40GB", "--problem", "p.toml"});
  EXPECT_EQ(answer["match"], "default");
  EXPECT_EQ(answer["stale"], 1);
}

TEST_F(Tuned, AnExportReplacesNothingThatItReadsAndLosesNothing) {
  const std::string text = *read_file(folder.path() / "w" / "scale.wisdom");
  const auto refused = ergotune(folder, {"wisdom", "export", "w", "--format", "kernel-launcher", "-o", "./w/"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("would be replaced"));
  EXPECT_EQ(*read_file(folder.path() / "w" / "scale.wisdom"), text);
  // the same kernel in two files, one of them without its header
  std::string other = text.substr(text.find('\n') + 1);
  other.replace(other.find("[4096]"), 6, "[512]");
  std::filesystem::create_directories(folder.path() / "two");
  folder.write("two/other.wisdom", text.substr(0, text.find('\n') + 1) + other);
  folder.write("two/scale.wisdom", "{}\n" + text.substr(text.find('\n') + 1));
  const auto written = json_of(ergotune(folder, {"wisdom", "export", "two", "-o", "one", "--json"}))["files"];
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0]["records"], 2);
  EXPECT_EQ(json_of(ergotune(folder, {"wisdom", "list", "one", "--json"}))["records"].size(), 2u);
}

}  // namespace
}  // namespace ergotune::test
