// The command `score` from outside: the document is what the contract says, from a cache without its problem file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

/// A Kernel Tuner cache of 16 x 4 configurations, some of them failed; times in ms.
std::string small_cache() {
  nlohmann::ordered_json cache, entries = nlohmann::ordered_json::object();
  cache["device_name"] = "some GPU";
  cache["kernel_name"] = "small";
  cache["problem_size"] = {1024};
  cache["tune_params_keys"] = {"block_size_x", "unroll"};
  for (int b = 1; b <= 16; ++b) cache["tune_params"]["block_size_x"].push_back(32 * b);
  cache["tune_params"]["unroll"] = {1, 2, 4, 8};
  cache["objective"] = "time";
  for (int b = 1; b <= 16; ++b)
    for (const int u : {1, 2, 4, 8}) {
      const double time = 1.0 + 0.1 * (b - 6) * (b - 6) + 0.2 * (u - 4) * (u - 4);
      nlohmann::ordered_json entry = {{"block_size_x", 32 * b}, {"unroll", u}};
      if (b * u > 100) {
        entry["time"] = "RuntimeFailedConfig";
      } else {
        entry["time"] = time;
        entry["times"] = {time, time, time, time};
      }
      entry["compile_time"] = 300.0;
      entry["verification_time"] = 0;
      entry["benchmark_time"] = 4 * time;
      entry["framework_time"] = 1.0;
      entry["strategy_time"] = 0;
      entries[std::to_string(32 * b) + "," + std::to_string(u)] = entry;
    }
  cache["cache"] = entries;
  return cache.dump(1);
}

TEST(Score, DocumentKeepsItsContract) {
  TemporaryFolder folder;
  folder.write("small_A.json", small_cache());
  const ProcessResult result = ergotune(folder, {"score", "--data", ".", "--strategies", "auto,simulated_annealing",
                                                 "--repeats", "3", "--seed", "5", "--figure", "scores.svg", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = json_of(result);
  EXPECT_EQ(document["provenance"], "replayed");
  ASSERT_EQ(document["strategies"].size(), 2u);
  for (const auto& [name, strategy] : document["strategies"].items()) {
    EXPECT_TRUE(strategy["mean"].is_number()) << name;
    ASSERT_EQ(strategy["spaces"].size(), 1u);
    const auto& space = strategy["spaces"]["small_A"];
    EXPECT_DOUBLE_EQ(space["score"], strategy["mean"]);
    EXPECT_TRUE(space["evaluations_to_5_percent"].is_number());
    EXPECT_GE(space["evaluations_to_1_percent"], space["evaluations_to_5_percent"]);
    for (const char* at : {"25", "50", "100", "200"}) {
      EXPECT_GT(space["relative_at"][at], 0) << at;
      EXPECT_LE(space["relative_at"][at], 1) << at;
    }
  }
  std::ifstream figure(folder.path() / "scores.svg");
  const std::string svg{std::istreambuf_iterator<char>(figure), {}};
  EXPECT_THAT(svg, HasSubstr("small_A"));
}

TEST(Score, MistakesAreSaidClearly) {
  TemporaryFolder folder;
  folder.write("small_A.json", small_cache());
  const ProcessResult unknown = ergotune(folder, {"score", "--data", "small_A.json", "--strategies", "genetics"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("genetic"));
  const ProcessResult missing = ergotune(folder, {"score", "--data", "nothing.json"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nothing.json"));
  EXPECT_EQ(ergotune(folder, {"score"}).exit_code, 2);
}

TEST(Score, TunesAStrategysHyperparameters) {
  TemporaryFolder folder;
  folder.write("small_A.json", small_cache());
  const ProcessResult result = ergotune(folder, {"score", "--data", "small_A.json", "--tune-strategy", "genetic",
                                                 "--trials", "5", "--repeats", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = json_of(result);
  EXPECT_EQ(document["trials"].size(), 5u);
  EXPECT_GE(document["mean"], document["default_mean"]);
  EXPECT_EQ(document["best"].size(), 3u);
}

}  // namespace
}  // namespace ergotune::test
