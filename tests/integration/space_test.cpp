// ergotune space, driven from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <sstream>

#include "base/files.hpp"
#include "support/command.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPlain = R"({
  "tune_params": {"block_size_x": [16, 32, 64, 128], "block_size_y": [1, 4, 16], "tile": [1, 2, 4], "mode": ["a", "b"]},
  "restrictions": ["block_size_x * tile <= 256", "mode == 'a' or tile > 1", "tile < 9"],
  "max_threads": 1024
})";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(SpaceCommand, NeedsNoDataFiles) {
  test::TemporaryFolder folder;
  folder.write("p.toml", R"toml(
[parameters]
B = [1, 2, 4]
[kernel]
function = "f"
arguments = [
  { name = "x", type = "float32", count = 8, fill = { file = "absent.bin" } },
  { name = "y", type = "float32", count = 8, access = "write" },
]
[kernel.source.c]
text = "void f(const float* x, float* y) { for (int i = 0; i < 8; ++i) y[i] = x[i]; }"
[verification.files]
y = "expected.bin"
)toml");
  EXPECT_EQ(test::json_of(test::ergotune(folder, {"space", "p.toml", "--json"}))["valid"], 3);
  const auto refused = test::ergotune(folder, {"tune", "p.toml", "--device", "host", "-q"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("p.toml:7"));
  EXPECT_THAT(refused.err, HasSubstr("absent.bin"));
  EXPECT_EQ(test::ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--budget", "2", "-q"}).exit_code, 0)
      << "what runs no kernel needs no data";
}

TEST(SpaceCommand, CountsThePlainJsonForm) {
  test::TemporaryFolder folder;
  folder.write("space.json", kPlain);
  const auto json = test::json_of(test::ergotune(folder, {"space", "space.json", "--json", "--explain"}));
  EXPECT_EQ(json["cartesian"], 72);
  // 2048 threads (128 x 16) are above max_threads, which nobody wrote as a restriction
  std::size_t valid = 0;
  for (const int x : {16, 32, 64, 128})
    for (const int y : {1, 4, 16})
      for (const int tile : {1, 2, 4})
        for (const bool a : {true, false}) valid += x * tile <= 256 && (a || tile > 1) && x * y <= 1024;
  EXPECT_EQ(json["valid"], valid);
  EXPECT_EQ(json["parameters"].size(), 4u);
  EXPECT_EQ(json["parameters"][0]["name"], "block_size_x");
  for (const char* key : {"build_seconds", "memory_bytes", "materialised"}) EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_GE(json["restrictions"].size(), 3u);
  EXPECT_EQ(json["restrictions"][0]["removed_alone"], 6);
  EXPECT_EQ(json["restrictions"][2]["redundant"], true);
}

TEST(SpaceCommand, ListsAndSamplesAsJsonLines) {
  test::TemporaryFolder folder;
  folder.write("space.json", kPlain);
  const auto valid =
      test::json_of(test::ergotune(folder, {"space", "space.json", "--json"}))["valid"].get<std::size_t>();
  const auto list = lines_of(test::ergotune(folder, {"space", "space.json", "--list"}).out);
  EXPECT_EQ(list.size(), valid);
  EXPECT_EQ(nlohmann::json::parse(list[0]),
            nlohmann::json::parse(R"({"block_size_x": 16, "block_size_y": 1, "tile": 1, "mode": "a"})"));
  const std::set<std::string> all(list.begin(), list.end());
  EXPECT_EQ(all.size(), valid);
  const auto sample = test::ergotune(folder, {"space", "space.json", "--sample", "10", "--seed", "3"});
  EXPECT_EQ(sample.out, test::ergotune(folder, {"space", "space.json", "--sample", "10", "--seed", "3"}).out);
  EXPECT_NE(sample.out, test::ergotune(folder, {"space", "space.json", "--sample", "10", "--seed", "4"}).out);
  const auto lines = lines_of(sample.out);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 10u);
  for (const auto& line : lines) EXPECT_TRUE(all.contains(line)) << line;
}

TEST(SpaceCommand, SaysWhyASpaceIsEmpty) {
  test::TemporaryFolder folder;
  folder.write("space.json", R"({"tune_params": {"a": [1, 2, 3]}, "restrictions": ["a > 2", "a < 3", "a > 0"]})");
  const auto result = test::ergotune(folder, {"space", "space.json", "--json"});
  EXPECT_EQ(result.exit_code, 2) << "as tune";
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["valid"], 0);
  EXPECT_THAT(json["why_empty"].get<std::string>(), HasSubstr("\"a > 2\", \"a < 3\""));
}

TEST(SpaceCommand, CountsClocksAsTuneDoes) {
  test::TemporaryFolder folder;
  folder.write("p.toml", R"toml(
restrictions = ["core_clock_mhz * BLOCK > 0"]
parameters = { BLOCK = [16, 32, 64] }
[kernel]
function = "f"
source.cuda.text = "__global__ void f(float* x) { x[threadIdx.x] = 1; }"
launch = { global = [64], block = ["BLOCK"] }
arguments = [{ name = "x", type = "float32", count = 64, access = "write" }]
[execution]
core_clock_mhz = 7
power_limit_w = [200, 300]
)toml");
  const auto counted = test::ergotune(folder, {"space", "p.toml", "--profile", "h100", "--json"});
  EXPECT_EQ(test::json_of(counted)["valid"], 3 * 7 * 2) << counted.err;
  const auto tuned = test::ergotune(
      folder, {"tune", "p.toml", "--device", "sim:h100", "--strategy", "brute_force", "--no-store", "--json"});
  EXPECT_EQ(test::json_of(tuned)["evaluated"], 3 * 7 * 2) << tuned.err;
}

TEST(SpaceCommand, StatesClocksThatItDoesNotCount) {
  test::TemporaryFolder folder;
  folder.write("p.toml", "space_only = true\n[parameters]\nx = [1, 2]\n[execution]\ncore_clock_mhz = 7\n");
  const auto result = test::ergotune(folder, {"space", "p.toml", "--json"});
  EXPECT_EQ(test::json_of(result)["valid"], 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("core_clock_mhz"), HasSubstr("7 values")));
}

TEST(SpaceCommand, TakesAnotherSize) {
  test::TemporaryFolder folder;
  folder.write(
      "p.toml",
      "space_only = true\nrestrictions = [\"N % x == 0\"]\n[constants]\nN = 8\n[parameters]\nx = [1, 3, 4, 8]\n");
  EXPECT_EQ(test::json_of(test::ergotune(folder, {"space", "p.toml", "--json"}))["valid"], 3);
  EXPECT_EQ(test::json_of(test::ergotune(folder, {"space", "p.toml", "--set", "N=6", "--json"}))["valid"], 2);
  EXPECT_EQ(test::ergotune(folder, {"space", "p.toml", "--set", "N=6,8"}).exit_code, 2) << "one at a time";
}

TEST(SpaceCommand, WithoutAKernelTheLimitsAreThoseOfTheBestDeviceHere) {
  test::TemporaryFolder folder;
  folder.write("p.toml",
               "space_only = true\nrestrictions = [\"x <= device.max_threads_per_block\"]\n[parameters]\nx = [16, 32]\n"
               "y = \"range(device.warp_size, 2 * device.warp_size)\"\n");
  const auto result = test::ergotune(folder, {"space", "p.toml", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: with the limits of "));
  EXPECT_GE(test::json_of(result)["valid"], 2);
}

TEST(SpaceCommand, DrawsWhatEachRestrictionRemoves) {
  test::TemporaryFolder folder;
  folder.write("p.json", kPlain);
  const auto result = test::ergotune(folder, {"space", "p.json", "--figure", "f.svg", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string figure = read_file(folder.path() / "f.svg").value_or("");
  EXPECT_THAT(figure, HasSubstr("block_size_x * tile &lt;= 256"));
  EXPECT_THAT(figure, HasSubstr("mode == 'a' or tile &gt; 1"));
  EXPECT_THAT(figure, HasSubstr(std::to_string(test::json_of(result)["valid"].get<int>())));
  EXPECT_EQ(test::ergotune(folder, {"space", "p.json", "--figure", "absent/f.svg"}).exit_code, 2);
}

// What closures give in BEAST (Anzt et al., Section 2.1): a range and a restriction give it as well.
TEST(SpaceCommand, HasFibonacciNumbersAndFactorisations) {
  test::TemporaryFolder folder;
  folder.write("p.toml",
               "space_only = true\n[constants]\nN = 360\n[parameters]\nf = \"range(1, 1001)\"\n"
               "a = \"range(1, N + 1)\"\nb = \"range(a, N + 1)\"\nc = \"range(b, N + 1)\"\n"
               "[[restrictions]]\nexpression = \"floor(sqrt(5 * f**2 + 4) + 0.5)**2 == 5 * f**2 + 4 or floor(sqrt(5 * "
               "f**2 - 4) + 0.5)**2 == 5 * f**2 - 4\"\n"
               "[[restrictions]]\nexpression = \"a * b * c == N\"\n");
  const auto space = test::json_of(test::ergotune(folder, {"space", "p.toml", "--json", "--list"}));
  std::set<int> fibonacci;
  std::set<std::array<int, 3>> factorisations;
  for (const auto& c : space["configurations"]) {
    fibonacci.insert(c["f"].get<int>());
    factorisations.insert({c["a"].get<int>(), c["b"].get<int>(), c["c"].get<int>()});
  }
  EXPECT_THAT(fibonacci, testing::ElementsAre(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987));
  EXPECT_EQ(factorisations.size(), 32u);
  EXPECT_EQ(space["valid"], 15 * 32);
}

TEST(SpaceCommand, ListsFailuresToCompileThatDifferInNumbersOnce) {
  test::TemporaryFolder folder;
  folder.write("p.toml", R"toml(
[parameters]
B = [1, 2, 4]
[kernel]
function = "f{{B}}"
arguments = [{ name = "x", type = "float32", count = 8, access = "write" }]
[kernel.source.c]
text = "#define TWICE(a, b) a##b\n#define NAME(a, b) TWICE(a, b)\nvoid NAME(f, B)(float* x) { NAME(missing, B) = x; }"
)toml");
  const auto compiled = test::ergotune(folder, {"space", "p.toml", "--device", "host", "--compile", "all"});
  EXPECT_EQ(compiled.exit_code, 1);
  const std::size_t first = compiled.out.find("missing");
  ASSERT_NE(first, std::string::npos) << compiled.out << compiled.err;
  for (const char* other : {"missing2", "missing4"})
    EXPECT_EQ(compiled.out.find(other), std::string::npos) << compiled.out;
}

// A job on the device would end at once.
TEST(SpaceCommand, CompilingChecksTheFilesOfBuffers) {
  test::TemporaryFolder folder;
  folder.write("p.toml", R"toml(
[parameters]
B = [1, 2]
[kernel]
function = "f"
arguments = [{ name = "x", type = "float32", count = 8, fill = { file = "x.bin" }, access = "read_write" }]
[kernel.source.c]
text = "void f(float* x) { x[0] = B; }"
)toml");
  const std::vector<std::string> command{"space", "p.toml", "--device", "host", "--compile", "all"};
  EXPECT_EQ(test::ergotune(folder, command).exit_code, 2);
  folder.write("x.bin", std::string(31, 'x'));
  EXPECT_EQ(test::ergotune(folder, command).exit_code, 2);
  folder.write("x.bin", std::string(32, 'x'));
  EXPECT_EQ(test::ergotune(folder, command).exit_code, 0);
}

// The exhaustive space of Anzt et al., Section 2.3, counted without being visited. The count was confirmed by
// a loop nest over the first five parameters and the numbers of divisors of what the other four divide.
TEST(SpaceCommand, CountsTheExhaustiveBeastSpace) {
  test::TemporaryFolder folder;
  const std::string file = ERGOTUNE_SOURCE_DIR "/examples/dgemm_beast/space.toml";
  const auto k20x =
      test::json_of(test::ergotune(folder, {"space", file, "--profile", "k20x", "--json", "--sample", "200"}));
  EXPECT_EQ(k20x["valid"], 39105980032u);
  EXPECT_EQ(k20x["parameters"].size(), 15u);
  EXPECT_LT(k20x["memory_bytes"], 100'000'000);
  for (const auto& c : k20x["sample"]) {
    const auto value = [&](const char* name) { return c[name].get<int>(); };
    EXPECT_LE(value("dim_m") * value("dim_n"), 1024);
    EXPECT_EQ(value("dim_m") * value("dim_n") % 32, 0);
    EXPECT_EQ(value("blk_m") % value("dim_m"), 0);
    EXPECT_EQ(value("blk_n") % value("dim_n"), 0);
    const int vector = value("simd") + 1;
    EXPECT_EQ(value("blk_m") % (vector * value("blk_m_a")), 0);
    EXPECT_EQ(value("blk_k") % (vector * value("blk_n_a")), 0);
    EXPECT_EQ(value("blk_k") % (vector * value("blk_m_b")), 0);
    EXPECT_EQ(value("blk_n") % (vector * value("blk_n_b")), 0);
    EXPECT_GE(value("blk_m") * value("blk_n"), 32 * (value("blk_m") + value("blk_n")));
  }
  const auto h100 = test::json_of(test::ergotune(folder, {"space", file, "--profile", "h100", "--json"}));
  EXPECT_EQ(h100["valid"], 62687841184u);
}

}  // namespace
}  // namespace ergotune
