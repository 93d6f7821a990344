// tune --set: one size, several, and what chooses among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// The best tile is N / 256.
const std::string kProblem = R"toml(
name = "sized"
[constants]
N = 256
M = 4
[constants_for."A100"]
N = 512
[parameters]
tile = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
other = [1, 2, 3]
[kernel]
function = "sized"
[kernel.launch]
grid = ["N"]
block = [64]
[simulation]
flops = "2 * N**3"
bytes = "4 * N**2"
efficiency = "0.9 / (1 + 0.2 * abs(tile - N / 256) + 0.3 * (other - 1))"
)toml";

struct Sizes : ::testing::Test {
  Sizes() { folder.write("p.toml", kProblem); }
  ProcessResult run(std::vector<std::string> more) {
    std::vector<std::string> words{"tune", "p.toml", "--device", "sim:a100", "-q", "--store", "s.db"};
    words.insert(words.end(), more.begin(), more.end());
    return ergotune(folder, words);
  }
  nlohmann::json tuned(std::vector<std::string> more) {
    more.emplace_back("--json");
    return json_of(run(std::move(more)));
  }
  TemporaryFolder folder;
};

TEST_F(Sizes, OneValueReplacesTheConstantOnEveryDevice) {
  EXPECT_EQ(tuned({})["best"]["configuration"]["tile"], 2) << "the A100's own";
  EXPECT_EQ(tuned({"--set", "N=2048"})["best"]["configuration"]["tile"], 8);
  const auto refused = run({"--set", "K=7"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("K"));
  const auto clock = run({"--set", "core_clock_mhz=1200"});
  EXPECT_EQ(clock.exit_code, 2);
  EXPECT_THAT(clock.err, HasSubstr("[execution]"));
  EXPECT_EQ(run({"--set", "N"}).exit_code, 2);
  EXPECT_EQ(run({"--tree", "t.py"}).exit_code, 2) << "no sizes to choose by";
  EXPECT_EQ(run({"--set", "N=512,1024", "--tree", "t.c"}).exit_code, 2) << "the tree is not C";
}

TEST_F(Sizes, EachHasItsBestAndATreeChooses) {
  const auto swept = tuned({"--set", "N=512,1024,2048,4096", "--tree", "choose.py"});
  ASSERT_EQ(swept["sizes"].size(), 4u);
  for (const auto& size : swept["sizes"])
    EXPECT_EQ(size["result"]["best"]["configuration"]["tile"], size["constants"]["N"].get<int>() / 256);
  EXPECT_EQ(swept["tree"]["mean_loss"], 0);
  EXPECT_GT(swept["one_for_all"]["mean_loss"], 0.05);
  EXPECT_GE(swept["one_for_all"]["worst_loss"], swept["one_for_all"]["mean_loss"]);
  const auto few = tuned({"--set", "N=512,1024,2048,4096", "--leaves", "2", "--worst-case"});
  EXPECT_GT(few["tree"]["worst_loss"], 0);
  EXPECT_LE(few["one_for_all"]["worst_loss"], swept["one_for_all"]["worst_loss"]);
  std::ofstream(folder.path() / "use.py") << text_of(folder.path() / "choose.py")
                                          << "for n in (512, 1024, 2048, 4096, 10**6):\n"
                                             "    assert choose_sized(n)['tile'] == min(n, 4096) // 256, n\n";
  EXPECT_EQ(std::system(("python3 " + (folder.path() / "use.py").string()).c_str()), 0);
}

TEST_F(Sizes, NearWinnersAreComparedInTurn) {
  folder.write("t.c", R"(#include <stdio.h>
void f(float* y) {
  FILE* log = fopen(LOG, "a");
  if (log) fprintf(log, "%d\n", TILE), fclose(log);
  *y = N;
}
)");
  folder.write("t.toml", "restrictions = ['TILE <= N']\n[constants]\nN = 1\nLOG = '\"" +
                             (folder.path() / "log").string() +
                             "\"'\n[parameters]\nTILE = [1, 2]\n[kernel]\nfunction = 'f'\nsource = { c = 't.c' }\n"
                             "arguments = [{ name = 'y', type = 'float32', count = 1, access = 'write' }]\n"
                             "[metrics]\ncost = '1.2 - 0.1 * TILE'\n");
  const auto swept =
      ergotune(folder, {"tune", "t.toml", "--device", "host", "-q", "--no-confirm", "--strategy", "brute_force",
                        "--objective", "min cost", "--set", "N=1,2", "--store", "t.db", "--json"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  std::istringstream log(text_of(folder.path() / "log"));
  int changes = 0, last = 0;
  for (int tile; log >> tile; last = tile) changes += tile != last;
  EXPECT_GE(changes, 5) << "the searches alone change three times";
}

TEST_F(Sizes, TheNextSizeOfASweepIsNoChangedProblem) {
  const auto swept =
      ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--set", "N=512,1024", "--budget", "5"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_THAT(swept.err, AllOf(HasSubstr("next size: N=1024"), HasSubstr("session 1"), Not(HasSubstr("changed"))));
}

TEST_F(Sizes, TheTreeCompilesAsCpp) {
  ASSERT_EQ(run({"--set", "N=512,4096", "--set", "M=4,8", "--tree", "choose.hpp"}).exit_code, 0);
  std::ofstream(folder.path() / "use.cpp") << "#include \"choose.hpp\"\nint main() { return choose_sized(4, 512).tile "
                                              "== 2 && choose_sized(8, 4096).tile == 16 ? 0 : 1; }\n";
  const std::string program = (folder.path() / "use").string();
  ASSERT_EQ(std::system(("c++ -o " + program + " " + program + ".cpp").c_str()), 0);
  EXPECT_EQ(std::system(program.c_str()), 0);
}

TEST_F(Sizes, TheTreeOfSeveralKernelsCompilesAsCpp) {
  folder.write("two.toml", R"toml(
[constants]
N = 256
[kernels.first]
function = "first"
parameters = { tile = [1, 2] }
launch = { grid = ["N"], block = [64] }
[kernels.second]
function = "second"
launch = { grid = ["N"], block = [64] }
[simulation]
flops = "2 * N**3"
bytes = "4 * N**2"
)toml");
  ASSERT_EQ(ergotune(folder, {"tune", "two.toml", "--device", "sim:a100", "-q", "--store", "s.db", "--set",
                              "N=512,4096", "--tree", "choose.hpp"})
                .exit_code,
            0);
  folder.write("use.cpp", "#include \"choose.hpp\"\nint main() { return choose_two(512).first_tile == 0; }\n");
  EXPECT_EQ(std::system(("c++ -fsyntax-only " + (folder.path() / "use.cpp").string()).c_str()), 0);
}

}  // namespace
}  // namespace ergotune::test
