// The command on files from elsewhere that are cut off, damaged or far too large.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

constexpr const char* kCut = "bx,status,time\n1,ok,0.2\n2,ok,0.1\n3,ok,0.3\n4,o";

TEST(DamagedInput, EveryVerbSaysThatARecordingIsCut) {
  TemporaryFolder folder;
  folder.write("cut.csv", kCut);
  folder.write("whole.csv", "bx,status,time\n1,ok,0.2\n2,ok,0.1\n3,ok,0.3\n4,ok,0.4\n");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"show", "cut.csv"},
                                                    {"show", "cut.csv", "--json"},
                                                    {"report", "cut.csv", "-o", "r.html"},
                                                    {"export", "cut.csv", "--format", "csv", "-o", "o.csv"},
                                                    {"compare", "whole.csv", "cut.csv"},
                                                    {"import", "cut.csv"},
                                                    {"tune", "cut.csv", "--device", "replay:cut.csv", "--no-store"}}) {
    const auto result = ergotune(folder, arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << result.err;
    EXPECT_NE(result.err.find("cut"), std::string::npos) << arguments[0] << ": " << result.err;
  }
  EXPECT_EQ(ergotune(folder, {"show", "whole.csv"}).err, "");
}

TEST(DamagedInput, AFifoAndAnEndlessDeviceAreNotWaitedFor) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "fifo.csv").c_str(), 0600), 0);
  for (const std::string verb : {"show", "space", "import"})
    for (const std::string file : {"fifo.csv", "/dev/zero"}) {
      const auto result = ergotune(folder, {verb, file}, 20);
      EXPECT_EQ(result.exit_code, 2) << verb << " " << file << ": " << result.err;
      EXPECT_FALSE(result.timed_out) << verb << " " << file;
    }
}

TEST(DamagedInput, ASmallStackIsEnough) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ProcessOptions options;
  options.folder = folder.path().string();
  for (const std::string arguments : {"space p.toml", "tune p.toml --device host --no-store -q --no-confirm"}) {
    const auto result =
        run_process({"/bin/sh", "-c", "ulimit -s 64; exec " + ergotune_program() + " " + arguments}, options);
    EXPECT_EQ(result.signal, 0) << arguments << ": " << result.err;
    EXPECT_TRUE(result.exit_code == 0 || result.out.find("compile_error") != std::string::npos)
        << "the compiler may need more: " << result.out;
  }
}

}  // namespace
}  // namespace ergotune::test
