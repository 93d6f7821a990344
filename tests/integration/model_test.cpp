// `model` and `analyse`, driven from outside.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/process/process.hpp"
#include "integration/support/command.hpp"
#include "recorded_data.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::json;

/// A folder of this process alone: the same tests may run elsewhere on this machine.
std::string folder() {
  static const test::TemporaryFolder own;
  return own.path().string();
}

ProcessResult command(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {ERGOTUNE_BINARY_DIR "/ergotune"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_process(all);
}

std::string write(const std::string& name, const std::string& text) {
  const std::string file = folder() + "/" + name;
  std::ofstream(file) << text;
  return file;
}

TEST(ModelCommand, FitsTheRecordedRtxA4000) {
  const auto file = test::recorded_data() / "power/synthetic_fp32_cache_NVIDIA_RTX_A4000.json";
  const ProcessResult result = command({"model", "--from", file.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["found"], true);
  EXPECT_NEAR(document["ridge_mhz"]["value"].get<double>(), 1350, 67.5);
  EXPECT_LE(document["ridge_mhz"]["low"].get<double>(), 1335);
  EXPECT_GE(document["ridge_mhz"]["high"].get<double>(), 1335);
  EXPECT_EQ(document["suggested_range_mhz"].size(), 2u);
  EXPECT_GT(document["removed_share"].get<double>(), 0.7);
  EXPECT_TRUE(document["parameters"].contains("idle_w"));
  EXPECT_EQ(document["provenance"], "replayed");
}

TEST(ModelCommand, FitsCsvAndSaysWhenThereIsNoRidge) {
  std::string text = "clock_mhz,power_w,time_s\n";
  for (int f = 300; f <= 1500; f += 150) text += std::to_string(f) + "," + std::to_string(40 + 0.1 * f) + ",0.1\n";
  const std::string figure = folder() + "/power.svg";
  const ProcessResult result = command({"model", "--from", write("straight.csv", text), "--json", "--figure", figure});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["found"], false);
  EXPECT_TRUE(document["ridge_mhz"].is_null());
  EXPECT_EQ(document["optimal_clock_mhz"]["value"], 1500);
  EXPECT_TRUE(std::filesystem::exists(figure));
}

TEST(ModelCommand, SamplesASimulatedDeviceAdaptively) {
  const ProcessResult result = command({"model", "--device", "sim:h100", "--clocks", "10", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["provenance"], "simulated");
  EXPECT_EQ(document["samples"].size(), 13u) << "three of them at its other memory clock";
  EXPECT_EQ(document["valid_for"]["memory_clock_mhz"], Json::array({1593, 2619}));
  ASSERT_EQ(document["found"], true);
  EXPECT_NEAR(document["ridge_mhz"]["value"].get<double>(), 1300, 100);  // the profile's
  EXPECT_GT(document["removed_share"].get<double>(), 0.7);
}

TEST(ModelCommand, FitsTheMemoryClockAndTheTemperature) {
  std::string text = "clock_mhz,power_w,memory_clock_mhz,temperature_c\n";
  for (int i = 0; i < 16; ++i) {
    const int mhz = 300 + 90 * i, memory = i % 3 == 0 ? 1600 : 2600, degrees = i % 2 == 0 ? 40 : 65;
    text += std::to_string(mhz) + "," + std::to_string(40 + 0.1 * mhz + 0.02 * memory + 0.4 * degrees) + "," +
            std::to_string(memory) + "," + std::to_string(degrees) + "\n";
  }
  const ProcessResult result = command({"model", "--from", write("terms.csv", text), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_NEAR(document["parameters"]["memory_w_per_mhz"]["value"].get<double>(), 0.02, 0.002);
  EXPECT_NEAR(document["parameters"]["temperature_w_per_c"]["value"].get<double>(), 0.4, 0.04);
  EXPECT_EQ(document["valid_for"]["temperature_c"], Json::array({40, 65}));
  for (const Json& sample : document["samples"])
    EXPECT_NEAR(sample["modelled_power_w"].get<double>(), sample["power_w"].get<double>(), 0.5) << sample;
}

TEST(ModelCommand, AFileWithoutAClockIsAUsersMistake) {
  const ProcessResult result = command({"model", "--from", write("nothing.csv", "a,b\n1,2\n"), "--json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(command({"model", "--from", "no_such_file.json"}).exit_code, 2);
  const ProcessResult bad = command({"model", "--from", write("bad.csv", "clock_mhz,power_w\n300,40\nx,50\n")});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("bad.csv:3"), std::string::npos);
}

/// Two variants of a kernel on a simulated H100, at clocks around the model's optimum.
Json tuned_by_model(const std::string& name, const std::string& simulation, const std::vector<std::string>& more) {
  const std::string file =
      write(name + ".toml",
            "name = \"" + name +
                "\"\n[parameters]\ntile = [1, 2]\n[kernel]\nfunction = \"f\"\n"
                "[kernel.source.c]\ntext = 'void f(void) {}'\n[execution]\ncore_clock_mhz = \"model\"\n[simulation]\n" +
                simulation);
  std::vector<std::string> all{"tune", file, "--device", "sim:h100", "--no-confirm", "--json", "--quiet"};
  all.insert(all.end(), more.begin(), more.end());
  const ProcessResult result = command(all);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

double clock_of(const Json& result) { return result["configuration"]["core_clock_mhz"].get<double>(); }

TEST(ModelRange, IsLeftWhereTheBestClockIsItsEnd) {
  const Json model = Json::parse(command({"model", "--device", "sim:h100", "--json"}).out);
  const double low = model["suggested_range_mhz"][0], high = model["suggested_range_mhz"][1];
  const double highest = model["valid_for"]["clock_mhz"][1];
  const std::string compute = "flops = \"1e12\"\nbytes = \"1e6\"\n";
  for (const bool kept : {false, true}) {
    const auto where = [&](const std::string& name) {
      return kept ? std::vector<std::string>{"--store", folder() + "/" + name + ".db"}
                  : std::vector<std::string>{"--no-store"};
    };
    const auto with = [&](std::vector<std::string> words, const std::string& name) {
      for (const std::string& word : where(name)) words.push_back(word);
      return words;
    };
    const Json fast =
        tuned_by_model("fast", compute, with({"--objective", "time", "--strategy", "brute_force"}, "fast"));
    EXPECT_GE(clock_of(fast["best"]), highest) << "the range ended at " << high;
    EXPECT_EQ(fast["evaluated"], fast["space"]) << "nothing is measured twice";
    const Json slow =
        tuned_by_model("slow", compute, with({"--objective", "min core_clock", "--strategy", "brute_force"}, "slow"));
    EXPECT_LT(clock_of(slow["best"]), 0.8 * low) << "the range began at " << low;
  }
  const Json inside =
      tuned_by_model("inside", compute, {"--objective", "energy", "--strategy", "brute_force", "--no-store"});
  EXPECT_GE(clock_of(inside["best"]), low);
  EXPECT_LE(clock_of(inside["best"]), high);
  const Json spent = tuned_by_model("spent", compute, {"--objective", "time", "--budget", "1", "--no-store"});
  EXPECT_EQ(spent["evaluated"], 1) << "a budget is kept";
}

TEST(AnalyseCommand, TellsOfTheRecordedA100Gemm) {
  const auto file = test::recorded_data() / "energy/gemm_A100_898_open.json.gz";
  const ProcessResult result = command({"analyse", file.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  for (const char* key : {"pareto", "hull", "quadrants", "influences", "centrality"}) {
    EXPECT_TRUE(document.contains(key)) << key;
  }
  EXPECT_EQ(document["usable"], 898);
  EXPECT_GE(document["pareto"].size(), 2u);
  EXPECT_GT(document["quadrants"]["beat_fastest_in_energy"].get<int>(), 0);
  EXPECT_TRUE(document["centrality"]["objectives"].contains("energy"));
}

TEST(AnalyseCommand, OfASimulatedDeviceIsThatOfItsSearchedSpace) {
  const std::string problem = (test::recorded_data() / "../../../examples/clocks/simulated_gemm.toml").string();
  const ProcessResult whole = command({"analyse", problem, "--device", "sim:a100", "--no-centrality", "--json"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const ProcessResult searched = command({"tune", problem, "--device", "sim:a100", "--strategy", "brute_force",
                                          "--no-store", "--no-confirm", "--objective", "energy", "--json", "-q"});
  ASSERT_EQ(searched.exit_code, 0) << searched.err;
  const Json document = Json::parse(whole.out), tuned = Json::parse(searched.out);
  EXPECT_EQ(document["configurations"], tuned["space"]);
  EXPECT_DOUBLE_EQ(document["quadrants"]["most_efficient"]["energy"].get<double>(),
                   tuned["best"]["quantities"]["energy"]["value"].get<double>());
  EXPECT_TRUE(document["centrality"]["objectives"].empty());
  EXPECT_EQ(command({"analyse", problem, "--device", "cuda:0"}).exit_code, 2) << "it measures nothing";
}

}  // namespace
}  // namespace ergotune
