// kill -9 of plans at random moments: they resume, no row is lost, none is measured twice, clocks come back
// (crash_test.cpp: the same of a tuning run). ERGOTUNE_KILLS sets how often (3).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/random.hpp"
#include "integration/support/command.hpp"
#include "integration/support/fake_gpu.hpp"

namespace ergotune::test {
namespace {

using Rows = std::map<std::string, std::vector<std::string>>;

int kills() {
  const char* text = std::getenv("ERGOTUNE_KILLS");
  return text ? std::atoi(text) : 3;
}

/// What was there is still there, each configuration once.
void expect_nothing_lost(const Rows& before, const Rows& after, int kill) {
  for (const auto& [configuration, statuses] : after)
    EXPECT_EQ(statuses.size(), 1u) << configuration << ", kill " << kill;
  for (const auto& [configuration, statuses] : before) {
    ASSERT_TRUE(after.contains(configuration)) << configuration << " was lost by kill " << kill;
    EXPECT_EQ(after.at(configuration), statuses) << configuration;
  }
}

const char* const kClockedProblem = R"toml(
name = "clocked"
objective = "energy"
[parameters]
turn = [1, 2, 4]
[execution]
core_clock_mhz = [600, 1500]
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 100 },
  { name = "b", type = "float32", count = 100, access = "write" },
]
[kernel.source.c]
text = '''
static volatile int sink;
void work(int n, float* b) {
  for (int i = 0; i < n; ++i) b[i] = i;
  for (int i = 0; i < 100000 * turn; ++i) sink = i;
}
'''
)toml";

struct KillOnABoard : OnFakeGpu {
  KillOnABoard() : OnFakeGpu("generation=hopper devices=1") {}
  /// Who set what, for what went wrong.
  std::string last_calls() {
    std::string message = "\nlast calls of setters:";
    const auto calls = nvml.setter_calls();
    for (std::size_t i = calls.size() > 12 ? calls.size() - 12 : 0; i < calls.size(); ++i)
      message += fmt::format("\n  {:.3f} pid {} {}({}, {}) = {}", calls[i].time, calls[i].pid, calls[i].function,
                             calls[i].a, calls[i].b, calls[i].result);
    return message + fmt::format("\n  now {:.3f}", nvml.now());
  }
};

/// The guardian of a session: a child of its in a session of its own that has no worker's verb.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", parent));
  for (pid_t pid = 0; in >> pid;) found.push_back(pid);
  return found;
}

using QuietKillOnABoard = KillOnABoard;

// The session, its whole group, or the session and then its guardian; the user's own limit comes back each time, which
// is not the default. Where plans have come to their end the next kill meets them in a new store. scripts/kill-plans
// runs 500.
TEST_F(QuietKillOnABoard, HoweverAPlanIsKilledTheUsersOwnSettingsComeBack) {
  nvml.gpu().power_limit_mw = 650'000;
  std::string problem = kClockedProblem;
  problem.insert(problem.find("[kernel]"), "power_limit_w = [300, 500]\n");
  folder.write("p.toml", problem);
  int campaigns = 1, changed = 0, ended = 0, stages_seen = 0;
  const auto store = [&] { return folder.path() / fmt::format("p{}.db", campaigns); };
  const auto tune = [&] {
    return std::vector<std::string>{
        "tune",     "p.toml",         "--device",  "host",   "--plan",      "energy_then_clocks,global_energy",
        "--sensor", "nvml:0",         "--control", "nvml:0", "--precision", "1000%",
        "--store",  store().string(), "--quiet"};
  };
  const auto set = [&] { return nvml.gpu().locked != 0 || nvml.gpu().power_limit_mw != 650'000; };
  const char* seed = std::getenv("ERGOTUNE_KILL_SEED");
  Random random(seed ? static_cast<std::uint64_t>(std::atoll(seed)) : 20261122);
  Rows known;
  for (int kill = 1; kill <= kills(); ++kill) {
    ChildProcess session = start_ergotune(folder, tune());
    std::this_thread::sleep_for(std::chrono::duration<double>(0.3 + 3.5 * random.uniform()));
    changed += set();
    const bool had_ended = session.wait(0).has_value();
    ended += had_ended;
    const std::vector<pid_t> children = children_of(session.pid());
    const int way = kill % 3;
    std::string said;
    if (!had_ended) {
      ::kill(way == 1 ? -session.pid() : session.pid(), SIGKILL);
      EXPECT_TRUE(session.wait(20));
      if (way == 2) {
        ::usleep(static_cast<useconds_t>(20'000 * random.uniform()));
        // workers die with their session; what is left is the guardian
        for (const pid_t child : children) ::kill(child, SIGKILL);
        const ProcessResult restored = ergotune(folder, {"clocks", "restore"});
        said = restored.err;
        EXPECT_EQ(restored.exit_code, 0) << "kill " << kill << ": " << restored.err;
      }
    }
    const double deadline = host_seconds() + 30;
    while (set() && host_seconds() < deadline) ::usleep(20'000);
    EXPECT_FALSE(set()) << "kill " << kill << ", way " << way << ": locked " << nvml.gpu().locked << ", limit "
                        << nvml.gpu().power_limit_mw << "; session " << session.pid() << (had_ended ? " had ended" : "")
                        << ", children " << ::testing::PrintToString(children) << ", restore said: " << said
                        << last_calls();
    if (!std::filesystem::exists(store())) continue;
    Rows now = stored_rows(store());
    expect_nothing_lost(known, now, kill);
    stages_seen += now.size() > known.size();
    known = std::move(now);
    if (had_ended) {
      ++campaigns;
      known.clear();
    }
  }
  auto json = tune();
  json.push_back("--json");
  const auto document = json_of(ergotune(folder, json, 240));
  for (const auto& plan : document["plans"])
    EXPECT_FALSE(plan.contains("why_not")) << plan << ::testing::PrintToString(stored_rows(store()));
  EXPECT_EQ(nvml.gpu().power_limit_mw, 650'000u);
  std::fprintf(stderr,
               "%d kills, %d of sessions at work, settings were changed at the moment of %d; %d sessions got on "
               "between two kills, %d pairs of plans came to their end\n",
               kills(), kills() - ended, changed, stages_seen, campaigns - 1);
}

}  // namespace
}  // namespace ergotune::test
