// ergotune govern, on a fake GPU in real time: a program whose work takes as long as the clock makes it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "ergotune/random.hpp"
#include "integration/support/command.hpp"
#include "integration/support/fake_gpu.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::test {
namespace {

using nlohmann::json;

/// A program in Python's ctypes: units of 5 ms on the fake GPU, each told.
const char* const kProgram = R"(
import ctypes, os, sys, time
work = ctypes.CDLL(os.environ["ERGOTUNE_NVML"]).fake_nvml_work
work.argtypes = [ctypes.c_double] * 3
progress = open(os.environ["ERGOTUNE_PROGRESS"], "ab", buffering=0) if "tell" in sys.argv else None
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    work(float(sys.argv[2]), 0.004, 0.8)
    if progress:
        progress.write(b".")
sys.exit(3)
)";

struct QuietGovern : OnFakeGpu {
  QuietGovern() : OnFakeGpu("generation=ga100 devices=1") {}
  void SetUp() override {
    OnFakeGpu::SetUp();
    nvml.gpu().counter.sleeps = 0;
    nvml.restart_gpus();
    folder.write("program.py", kProgram);
  }
  static std::vector<std::string> govern(const std::string& seconds, bool tells) {
    std::vector<std::string> words{"govern", "--control", "nvml:0", "--max-slowdown", "20%", "-o", "g.json", "--"};
    words.insert(words.end(), {"python3", "program.py", seconds, "1"});
    if (tells) words.push_back("tell");
    return words;
  }
};

TEST_F(QuietGovern, LowersTheClockOfAProgramThatWaitsForMemory) {
  const ProcessResult result = ergotune(folder, govern("20", true), 120);
  EXPECT_EQ(result.exit_code, 3) << "the program's: " << result.err;
  const json document = json::parse(read_file(folder.path() / "g.json").value());
  EXPECT_EQ(document.at("progress"), "program");
  ASSERT_FALSE(document.at("phases").empty());
  double lowest = 1e9;
  for (const json& phase : document.at("phases")) lowest = std::min(lowest, phase.at("clock_mhz").get<double>());
  EXPECT_LT(lowest, 1410 / 1.2) << "lower than a program may run whose whole time follows the clock: " << document;
  EXPECT_GT(document.at("exploring").at("seconds"), 0);
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(QuietGovern, KeepsToTheBoundWhereTheProgramTellsNothing) {
  const ProcessResult result = ergotune(folder, govern("8", false), 120);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const json document = json::parse(read_file(folder.path() / "g.json").value());
  EXPECT_EQ(document.at("progress"), "clock");
  for (const json& phase : document.at("phases")) EXPECT_GE(phase.at("clock_mhz"), 1410 / 1.2 - 15) << document;
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(QuietGovern, RefusesWhatCannotBe) {
  EXPECT_EQ(ergotune(folder, {"govern", "--max-slowdown", "5", "--", "true"}).exit_code, 2);
  EXPECT_EQ(ergotune(folder, {"govern", "--control", "nvml:7", "--", "true"}).exit_code, 2);
  EXPECT_EQ(ergotune(folder, {"govern", "--", "/nowhere/program"}).exit_code, 2);
}

TEST_F(QuietGovern, RestoresWhoeverIsKilled) {
  const char* text = std::getenv("ERGOTUNE_KILLS");
  const int kills = text ? std::atoi(text) : 10;
  Random random(20261124);
  int in_force = 0;
  for (int kill = 0; kill < kills; ++kill) {
    ChildProcess session = start_ergotune(folder, govern("60", true));
    ::usleep(static_cast<useconds_t>(2e6 * random.uniform()));
    in_force += nvml.gpu().locked != 0;
    const std::vector<pid_t> below = descendants_of(session.pid());
    if (kill % 3 == 1)  // the governed program and the guardian first
      for (const pid_t process : below) ::kill(process, SIGKILL);
    if (kill % 3 == 2)
      session.kill(SIGTERM);
    else
      ::kill(session.pid(), SIGKILL);
    ASSERT_TRUE(session.wait(30));
    if (kill % 3 == 1) {
      ::usleep(300'000);
      EXPECT_EQ(ergotune(folder, {"clocks", "restore"}).exit_code, 0);
    }
    const double deadline = host_seconds() + 30;
    while ((nvml.gpu().locked != 0 || !list_journals().empty()) && host_seconds() < deadline) ::usleep(5000);
    EXPECT_EQ(nvml.gpu().locked, 0) << "kill " << kill;
    EXPECT_TRUE(list_journals().empty()) << "kill " << kill;
    if (HasFailure()) break;
  }
  std::fprintf(stderr, "%d kills, a clock was set at %d of them\n", kills, in_force);
}

}  // namespace
}  // namespace ergotune::test
