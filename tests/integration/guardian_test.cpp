// The campaign: sessions that are killed at a random moment, and a device that must afterwards be what it was
// before. The device's state lives outside every process that is killed: the fake NVML's in a mapped file,
// the others' in trees of files. ERGOTUNE_KILL_RUNS sets the number of runs (CI: 60; the documented campaign:
// 1000), ERGOTUNE_KILL_DEVICE the one device (amdgpu:card1 is the Instinct).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "ergotune/random.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian_host.hpp"

namespace ergotune {
namespace {

using fake_nvml::FakeNvml;

// The session that is killed: sets one value after another as a tuning run would, until the end comes. It
// tells its guardian's pid through a file, so that the test can kill that too.
int run_session(const std::vector<std::string>& arguments) {
  const std::string id = arguments.at(0), guardian_file = arguments.at(1);
  Random random(std::strtoull(arguments.at(2).c_str(), nullptr, 10));
  try {
    auto session = ControlSession::open(open_control(id));
    if (FILE* out = std::fopen((guardian_file + ".new").c_str(), "w")) {
      std::fprintf(out, "%d", session->guardian_pid());
      std::fclose(out);
      std::rename((guardian_file + ".new").c_str(), guardian_file.c_str());
    }
    for (int i = 0; i < 2000; ++i) {
      for (const auto quantity :
           {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz, ControlQuantity::power_limit_w}) {
        const auto range = session->control().range(quantity);
        if (!range.supported) continue;
        const double value = range.values.empty() ? std::floor(range.low + (range.high - range.low) * random.uniform())
                                                  : range.values[random.below(range.values.size())];
        session->set(quantity, value);
      }
    }
    return session->finish().complete ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "session: %s\n", error.what());
    return 2;
  }
}

const guardian_host::Host kHost({{"campaign-session", run_session}});

enum class Kill { session, group, guardian_then_session, session_then_guardian };
constexpr std::array kKills = {Kill::session, Kill::group, Kill::guardian_then_session, Kill::session_then_guardian};
const char* name_of(Kill kill) {
  switch (kill) {
    case Kill::session:
      return "session";
    case Kill::group:
      return "process group";
    case Kill::guardian_then_session:
      return "guardian, then session";
    case Kill::session_then_guardian:
      return "session, then guardian";
  }
  return "";
}

struct World {
  FakeNvml nvml{"generation=hopper"};
  control_trees::Tree tree, state;
  World() {
    nvml.gpu().power_limit_mw = 600000;  // not the default
    control_trees::add_tegra(tree);
    control_trees::add_amdgpu(tree);
    control_trees::add_instinct(tree);
    control_trees::add_cpufreq(tree);
  }
  std::map<std::string, std::string> environment() const {
    auto variables = nvml.environment();
    variables["ERGOTUNE_SYSFS_ROOT"] = tree.root().string();
    variables["ERGOTUNE_STATE_DIR"] = (state.root() / "state").string();
    variables["ERGOTUNE_HELPER_SOCKET"] = "/nowhere";
    return variables;
  }
  // Everything a session can change.
  std::map<std::string, std::string> settings() {
    auto all = control_trees::amdgpu_state(tree);
    const auto& b = nvml.gpu();
    const auto put = [&](const char* name, long long value) { all[name] = std::to_string(value); };
    put("locked", b.locked);
    put("memory_locked", b.memory_locked);
    put("power_limit_mw", b.power_limit_mw);
    put("persistence", b.persistence);
    put("application_clocks_set", b.application_clocks_set);
    put("application_graphics", b.application_graphics);
    put("application_memory", b.application_memory);
    return all;
  }
};

pid_t read_pid(const std::filesystem::path& file) {
  std::ifstream in(file);
  pid_t pid = 0;
  in >> pid;
  return pid;
}

bool gone(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  const auto end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'Z';
}

template <class Condition>
bool eventually(Condition condition, double seconds) {
  for (const double end = host_seconds() + seconds; host_seconds() < end; usleep(500))
    if (condition()) return true;
  return condition();
}

std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after) {
  std::string message;
  for (const auto& [name, value] : before) {
    const auto found = after.find(name);
    if (found == after.end())
      message += name + " is gone; ";
    else if (found->second != value)
      message += name + ": \"" + value + "\" became \"" + found->second + "\"; ";
  }
  return message;
}

TEST(Guardian, RestoresAfterAKillAtARandomMoment) {
  const char* wanted = std::getenv("ERGOTUNE_KILL_RUNS");
  const int runs = wanted ? std::atoi(wanted) : 60;
  const char* only = std::getenv("ERGOTUNE_KILL_DEVICE");
  const char* seed_text = std::getenv("ERGOTUNE_KILL_SEED");
  const std::uint64_t seed = seed_text ? std::strtoull(seed_text, nullptr, 10) : 1;
  Random random(seed);
  World world;
  const auto before = world.settings();
  const auto environment = world.environment();
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  constexpr std::array devices = {"nvml:0", "tegra", "amdgpu:card0", "amdgpu:card1", "cpufreq"};
  // Orphans come to us instead of to init, so that they can be reaped and their end be seen.
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  int restored = 0, changed_when_killed = 0, journal_when_killed = 0, replayed = 0;
  std::map<std::string, int> by_kind;
  const auto guardian_file = world.state.root() / "guardian-pid";
  for (int run = 0; run < runs; ++run) {
    const char* drawn = devices[random.below(devices.size())];
    const char* device = only ? only : drawn;
    const Kill kill = kKills[static_cast<std::size_t>(run) % kKills.size()];
    SCOPED_TRACE(testing::Message() << "run " << run << " of seed " << seed << ": " << device << ", " << name_of(kill));
    std::filesystem::remove(guardian_file);
    auto session = ChildProcess::start(
        {own_program(), "campaign-session", device, guardian_file.string(), std::to_string(random())});
    // Mostly while clocks change, at times while the session is only starting.
    if (!random.chance(0.1)) eventually([&] { return std::filesystem::exists(guardian_file); }, 30);
    usleep(static_cast<useconds_t>(random.below(30000)));

    const pid_t guardian = read_pid(guardian_file);
    const pid_t pid = session.pid();
    changed_when_killed += world.settings() != before;
    journal_when_killed += !list_journals().empty();
    switch (kill) {
      case Kill::session:
        ::kill(pid, SIGKILL);
        break;
      case Kill::group:
        ::kill(-pid, SIGKILL);
        break;
      case Kill::guardian_then_session:
        if (guardian > 0) ::kill(guardian, SIGKILL);
        usleep(static_cast<useconds_t>(random.below(3000)));
        ::kill(pid, SIGKILL);
        break;
      case Kill::session_then_guardian:
        ::kill(pid, SIGKILL);
        usleep(static_cast<useconds_t>(random.below(3000)));
        if (guardian > 0 && !gone(guardian)) ::kill(guardian, SIGKILL);
        break;
    }
    session.wait();
    ++by_kind[name_of(kill)];
    // Whoever still watches gets the time to finish; where nobody does, the next start of the command puts it back.
    const bool by_itself = eventually(
        [&] {
          while (waitpid(-1, nullptr, WNOHANG) > 0) {
          }
          return list_journals().empty() && world.settings() == before;
        },
        kill == Kill::session || kill == Kill::group ? 30 : 0.3);
    if (!by_itself) {
      ASSERT_TRUE(kill == Kill::guardian_then_session || kill == Kill::session_then_guardian)
          << "the guardian lives, so nobody else should be needed: " << difference(before, world.settings());
      // A guardian that took over may be at work: then the command leaves it alone, and we ask again.
      ASSERT_TRUE(eventually(
          [&] {
            const auto result = run_process({ERGOTUNE_BINARY_DIR "/ergotune", "clocks", "restore"});
            EXPECT_EQ(result.exit_code, 0) << result.err;
            return list_journals().empty() && world.settings() == before;
          },
          30));
      ++replayed;
    }
    ASSERT_EQ(difference(before, world.settings()), "");
    ++restored;
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  std::printf(
      "%d of %d killed sessions restored (seed %llu); settings were changed at the moment of the kill in %d, a journal "
      "was open in %d; %d needed `ergotune clocks restore` because their guardian was killed too\n",
      restored, runs, static_cast<unsigned long long>(seed), changed_when_killed, journal_when_killed, replayed);
  for (const auto& [name, count] : by_kind) std::printf("  %-24s %d\n", name.c_str(), count);
  EXPECT_EQ(restored, runs);
  EXPECT_GT(changed_when_killed, runs / 10) << "the kills must meet sessions that have changed something";
}

// The same through the command itself: its hidden verb is the guardian of sessions in programs that are not ergotune.
TEST(Guardian, VerbIsHiddenAndRefusesToBeStartedByHand) {
  const auto help = run_process({ERGOTUNE_BINARY_DIR "/ergotune", "--help"});
  EXPECT_EQ(help.out.find("guardian"), std::string::npos);
  EXPECT_NE(run_process({ERGOTUNE_BINARY_DIR "/ergotune", "guardian"}).exit_code, 0);
}

}  // namespace
}  // namespace ergotune
