// kill -9 of the session at random moments: no stored row is lost, none is measured twice, the database is
// intact, and no worker outlives it. ERGOTUNE_KILLS sets how many (8; the full run is 50).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/clock.hpp"
#include "ergotune/random.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

TEST(Crash, KilledAtRandomMomentsNothingIsLostAndNothingMeasuredTwice) {
  const char* wanted = std::getenv("ERGOTUNE_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 8;
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(std::max(1000, 60 * kills)));
  const std::filesystem::path store = folder.path() / "c.db";
  const std::vector<std::string> command{"tune",         "c.toml", "--device", "host",    "--strategy",
                                         "random",       "--seed", "1",        "--store", "c.db",
                                         "--no-confirm", "--jobs", "1"};
  Random random(42);
  std::map<std::string, std::vector<std::string>> before;
  std::size_t measured_in_all = 0;
  // On a slow machine sessions may be killed before they measure: they are given longer, and the kills go on until they
  // did.
  double longest = 1.2;  // s
  const double patience = host_seconds() + 120;
  const auto did_something = [&] { return measured_in_all > static_cast<std::size_t>(kills); };
  for (int kill = 0; kill < kills || (!did_something() && host_seconds() < patience); ++kill) {
    {
      ChildProcess session = start_ergotune(folder, command);
      ::usleep(static_cast<useconds_t>(1e6 * (0.05 + longest * random.uniform())));
      ::kill(session.pid(), SIGKILL);  // the session alone: its workers must notice by themselves
      const auto status = session.wait(10);
      ASSERT_TRUE(status);
      EXPECT_TRUE(WIFSIGNALED(*status)) << text_of(folder.path() / "err");
    }
    if (before.empty()) longest *= 1.3;
    if (!std::filesystem::exists(store)) continue;
    EXPECT_EQ(integrity(store), "ok");
    const auto after = stored_rows(store);
    for (const auto& [configuration, statuses] : before) {
      ASSERT_TRUE(after.contains(configuration)) << configuration << " was lost by kill " << kill;
    }
    for (const auto& [configuration, statuses] : after) {
      EXPECT_EQ(statuses.size(), 1u) << configuration << " was measured twice by kill " << kill;
    }
    measured_in_all = after.size();
    before = after;
  }
  ASSERT_TRUE(did_something()) << measured_in_all
                               << " configurations: the sessions were killed before they did anything";
  // What remains is a store like any other.
  auto last = command;
  last.insert(last.end(), {"--budget", std::to_string(measured_in_all + 3), "--json", "--quiet"});
  const ProcessResult result = ergotune(folder, last);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = json_of(result);
  // One configuration per kill at most was running, and counts as known now.
  EXPECT_GE(document["resumed"].get<std::size_t>(), measured_in_all);
  EXPECT_LE(document["evaluated"].get<std::size_t>(), 3u);
  std::printf("killed %d times, %zu configurations measured\n", kills, measured_in_all);
  const double deadline = host_seconds() + 5;
  while (some_process_mentions(folder.path().string()) && host_seconds() < deadline) ::usleep(20'000);
}

TEST(Crash, WorkersEndWithTheirSessionEvenInAnEndlessKernel) {
  TemporaryFolder folder;
  std::string text = faults_problem();
  text.replace(text.find("\"good\", "), 8, "");
  folder.write("faults.toml", text);
  ChildProcess session = start_ergotune(folder, {"measure", "faults.toml", "--device", "host", "--config",
                                                 "{\"mode\": \"endless\"}", "--time-limit", "100", "--no-verify"});
  // The runner is a child of the session; wait until it spins.
  const auto busy_worker = [&]() -> pid_t {
    std::ifstream children("/proc/" + std::to_string(session.pid()) + "/task/" + std::to_string(session.pid()) +
                           "/children");
    for (pid_t pid = 0; children >> pid;) {
      const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
      const std::size_t end = stat.rfind(')');
      if (end == std::string::npos) continue;
      std::istringstream fields(stat.substr(end + 2));
      std::string field;
      for (int i = 3; i <= 14 && fields >> field; ++i) {
      }
      if (std::atol(field.c_str()) > 30) return pid;  // user time in ticks
    }
    return 0;
  };
  pid_t worker = 0;
  for (int i = 0; i < 1500 && worker == 0; ++i) {
    ::usleep(10'000);
    worker = busy_worker();
  }
  ASSERT_GT(worker, 0) << text_of(folder.path() / "err");
  ::kill(session.pid(), SIGKILL);
  ASSERT_TRUE(session.wait(10));
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    ::usleep(10'000);
    const std::string stat = text_of("/proc/" + std::to_string(worker) + "/stat");
    gone = stat.empty() || stat.find(") Z ") != std::string::npos;
  }
  EXPECT_TRUE(gone) << "worker " << worker << " spins on";
}

}  // namespace
}  // namespace ergotune::test
