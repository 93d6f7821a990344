// Problems of several kernels from outside: file, tune, show, report, export.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kExamples = ERGOTUNE_SOURCE_DIR "/examples/several/";

std::size_t files_below(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) count += entry.is_regular_file();
  return count;
}

TEST(Several, APipelineIsTunedAndReportedTheSameEverywhere) {
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  const TemporaryFolder folder;
  const std::string cache = (folder.path() / "code").string();
  const Json tuned = json_of(
      ergotune(folder, {"tune", kExamples + "pipeline.toml", "--device", "opencl", "--strategy", "brute_force",
                        "--precision", "0.3", "--store", "s.db", "--cache-dir", cache, "--no-confirm", "--json"}));
  EXPECT_EQ(tuned["space"], 6);
  EXPECT_EQ(tuned["statuses"], Json({{"ok", 6}})) << tuned.dump();
  // Three blocks of each kernel, and each is compiled once, whatever the other's is.
  EXPECT_EQ(files_below(cache), 6u);
  const Json& best = tuned["best"];
  EXPECT_TRUE(best["configuration"].contains("scale.BLOCK"));
  for (const char* name : {"time", "time.scale", "time.blur", "overlap"})
    EXPECT_TRUE(best["quantities"].contains(name)) << name;
  const Json shown = json_of(ergotune(folder, {"show", "s.db", "--json"}));
  EXPECT_EQ(shown["best"]["configuration"], best["configuration"]);
  ASSERT_EQ(ergotune(folder, {"report", "s.db", "-o", "r.html"}).exit_code, 0);
  EXPECT_THAT(text_of(folder.path() / "r.html"), HasSubstr("scale.BLOCK"));
  // Nothing is measured twice, and the objective may be one kernel's time.
  const Json again = json_of(ergotune(
      folder, {"tune", kExamples + "pipeline.toml", "--device", "opencl", "--strategy", "brute_force", "--precision",
               "0.3", "--store", "s.db", "--cache-dir", cache, "--no-confirm", "--objective", "time.blur", "--json"}));
  EXPECT_EQ(again["evaluated"], 0);
  EXPECT_EQ(again["resumed"], 6);
}

TEST(Several, EachKernelGetsAClockWhereTheChangeIsWorthIt) {
  const TemporaryFolder folder;
  const auto measure = [&](int launches, std::vector<std::string> more) {
    std::string text = text_of(kExamples + "phases.toml");
    text.replace(text.find("N = 200"), 7, fmt::format("N = {}", launches));
    folder.write("p.toml", text);
    std::vector<std::string> words{"measure",        "p.toml", "--kernel-clocks", "--device", "sim:a100",
                                   "--max-slowdown", "0.05",   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return ergotune(folder, words);
  };
  const Json lasting = json_of(measure(200, {"--clock-latency", "0.025"}));
  EXPECT_EQ(lasting["pays"], true) << lasting;
  EXPECT_EQ(lasting["apart"]["changes"], 2);
  EXPECT_LT(lasting["apart"]["clocks"][1]["clock_mhz"], lasting["apart"]["clocks"][0]["clock_mhz"]);
  EXPECT_LT(lasting["apart"]["energy"], lasting["common"]["energy"]);
  const Json brief = json_of(measure(1, {"--clock-latency", "0.025"}));
  EXPECT_EQ(brief["pays"], false) << brief;
  EXPECT_EQ(brief["apart"]["changes"], 0);
  EXPECT_EQ(measure(1, {}).exit_code, 2) << "a simulated device has no latency of its own";
}

TEST(Several, ASteppedFactorisationIsVerified) {
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  const TemporaryFolder folder;
  const Json measured = json_of(ergotune(folder, {"measure", kExamples + "lud.toml", "--device", "opencl", "--config",
                                                  "{\"lud.BLOCK\": 16}", "--precision", "0.3", "--json"}));
  EXPECT_THAT(measured["status"], testing::AnyOf("ok", "not_converged")) << measured.dump();  // the machine may be busy
  EXPECT_LT(measured["quantities"]["error"]["value"], 1e-2);
  EXPECT_GT(measured["quantities"]["time.lud"]["value"], measured["quantities"]["time.reset"]["value"]);
}

TEST(Several, WhatKernelsOweIsReportedByCommandAndReport) {
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  const TemporaryFolder folder;
  const Json reported =
      json_of(ergotune(folder, {"measure", kExamples + "pipeline.toml", "--device", "opencl", "--precision", "0.3",
                                "--attribute", "shapley", "--store", "s.db", "--json"}));
  double sum = 0;
  for (const Json& kernel : reported["attribution"]["kernels"]) {
    sum += kernel["time"]["value"].get<double>();
    EXPECT_EQ(kernel["time"]["provenance"], "modelled");
  }
  EXPECT_NEAR(sum / reported["rounds"][0]["quantities"]["time"]["value"].get<double>(), 1, 1e-9);
  // The round as given is what the store's latest session tells of, with the shares beside it.
  ASSERT_EQ(ergotune(folder, {"report", "s.db", "-o", "r.html"}).exit_code, 0);
  EXPECT_THAT(text_of(folder.path() / "r.html"),
              HasSubstr("\"attribution\":{\"method\":\"shapley\",\"provenance\":\"modelled\""));
  EXPECT_EQ(json_of(ergotune(folder, {"show", "s.db", "--json"}))["best"]["quantities"]["time"]["value"],
            reported["rounds"][0]["quantities"]["time"]["value"]);
}

TEST(Several, ThePapersSetsAreRight) {
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  const TemporaryFolder folder;
  const auto measured = [&](const std::string& name, const std::string& configuration) {
    const Json found = json_of(ergotune(folder, {"measure", kExamples + name, "--device", "opencl", "--precision",
                                                 "0.5", "--max-seconds", "0.02", "--config", configuration, "--json"}));
    EXPECT_THAT(found["status"], testing::AnyOf("ok", "not_converged")) << name << found.dump();
    // Beside plain C in double precision, not beside another configuration.
    EXPECT_GT(found["quantities"]["error"]["value"], 0) << name;
    EXPECT_LT(found["quantities"]["error"]["value"], 1e-3) << name;
  };
  measured("four.toml",
           R"({"streamcluster.BLOCK": 128, "particlefilter.BLOCK": 64, "lud.BLOCK": 16, "hotspot.BLOCK": 8})");
  measured("lud_particlefilter.toml", R"({"lud.BLOCK": 16, "particlefilter.BLOCK": 32})");
  measured("streamcluster_hotspot.toml", R"({"streamcluster.BLOCK": 64, "hotspot.BLOCK": 16})");
  // lud and the matrix product, each on a compute unit of its own where there are two.
  measured("shares.toml", fmt::format(R"({{"lud.BLOCK": 16, "matrixmul.BLOCK": 16, "workload.LUD": {}}})",
                                      std::thread::hardware_concurrency() > 1 ? 1 : 0));
}

TEST(Several, OccupancyReducesAsInThePaper) {
  // Guerreiro et al., Table IV: streamcluster has 10 block sizes, of which 4 keep a K20c's multiprocessors more than 80
  // % full.
  const TemporaryFolder folder;
  std::string kernels, names;
  const std::vector<std::pair<std::string, int>> set{
      {"streamcluster", 10}, {"particlefilter", 9}, {"lud", 5}, {"hotspot", 5}};
  for (const auto& [name, count] : set) {
    const bool square = count == 5;
    std::string values;
    for (int i = 1; i <= count; ++i) values += std::to_string(1 << i) + ",";
    kernels += "[kernels." + name + "]\nfunction = \"f\"\nparameters = { BLOCK = [" + values + "] }\nlaunch = { " +
               (square ? "global = [4096, 4096], block = [\"BLOCK\", \"BLOCK\"] }\n"
                       : "global = [1048576], block = [\"BLOCK\"] }\n") +
               "[simulation." + name + "]\nregisters = 30\n";
    names += "\"" + name + "\",";
  }
  folder.write("p.toml", "[execution]\ncore_clock_mhz = \"all\"\n" + kernels + "[workload]\nsteps = [{ concurrent = [" +
                             names + "] }]\n");
  const auto space_of = [&](const std::string& store, std::vector<std::string> more) {
    std::vector<std::string> strings{"tune",   "p.toml",       "--device", "sim:k40c", "--objective",
                                     "energy", "--no-confirm", "--store",  store,      "--json"};
    strings.insert(strings.end(), more.begin(), more.end());
    return json_of(ergotune(folder, strings));
  };
  EXPECT_EQ(space_of("a.db", {"--budget", "1"})["space"], 9000);
  const Json reduced = space_of("b.db", {"--occupancy", "0.8", "--strategy", "coordinate"});
  EXPECT_EQ(reduced["space"], 192);
  EXPECT_LE(reduced["evaluated"], 30);
  const Json planned = json_of(
      ergotune(folder, {"tune", "p.toml", "--device", "sim:k40c", "--plan", "guerreiro", "--store", "c.db", "--json"}));
  EXPECT_LE(planned["plans"][0]["evaluated"], 30) << planned.dump();
}

}  // namespace
}  // namespace ergotune::test
