// Control sessions: journal and guardian before the first change, everything back at the end, refusals.
#include "ergotune/power/guardian.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"
#include "base/process.hpp"
#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian_host.hpp"
#include "power/guardian_report.hpp"
#include "power/journal.hpp"

namespace ergotune {
namespace {

/// A program that changes a clock and is killed: its arguments are the root of the tree and the state folder.
int die_with_a_clock_set(const std::vector<std::string>& arguments) {
  ControlEnvironment environment;
  environment.sysfs_root = arguments.at(0);
  environment.state_folder = arguments.at(1);
  ControlSessionOptions options;
  options.restore_attempts = 2;
  const auto session = ControlSession::open(open_control("tegra", environment), options);
  if (session->set(ControlQuantity::core_clock_mhz, 1020).ok()) ::raise(SIGKILL);
  return 1;
}

const guardian_host::Host kHost({{"die-with-a-clock-set", die_with_a_clock_set}});

using control_trees::kTegraGpu;
using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

struct Sessions : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::map<std::string, std::string> before;
  void SetUp() override {
    control_trees::add_tegra(tree);
    before = tree.contents();
    environment.sysfs_root = tree.root();
    environment.state_folder = state.root() / "state";
  }
  std::unique_ptr<ControlSession> open(const ControlSessionOptions& options = {}) {
    return ControlSession::open(open_control("tegra", environment), options);
  }
  template <class Condition>
  static bool eventually(Condition condition, double seconds = 20) {
    for (const double end = host_seconds() + seconds; host_seconds() < end; usleep(2000))
      if (condition()) return true;
    return condition();
  }
};

TEST_F(Sessions, RestoreWhatWasThere) {
  auto session = open();
  EXPECT_GT(session->guardian_pid(), 0);
  EXPECT_THAT(list_journals(environment), SizeIs(0)) << "no journal before something changes";
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/max_freq"), "1020000000");
  const auto journals = list_journals(environment);
  ASSERT_THAT(journals, SizeIs(1));
  EXPECT_TRUE(journals[0].session.alive);
  EXPECT_EQ(journals[0].session.pid, getpid());
  const auto report = session->finish();
  EXPECT_TRUE(report.complete) << report.summary;
  EXPECT_EQ(tree.contents(), before);
  EXPECT_THAT(list_journals(environment), SizeIs(0));
  EXPECT_FALSE(session->set(kCore, 306).ok()) << "an ended session changes nothing";
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, TheDestructorRestores) {
  ASSERT_TRUE(open()->set(kCore, 1020).ok());
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, DoNotRepeatAChange) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  EXPECT_EQ(session->changes(), 1u);
  EXPECT_FALSE(session->set(kCore, 1021).ok());
  EXPECT_EQ(session->current().count(kCore), 0u) << "after a failed set nothing is taken for granted";
}

TEST_F(Sessions, TheSecondIsRefusedAndToldAboutTheFirst) {
  ControlSessionOptions options;
  options.command = "ergotune tune first.toml";
  const auto first = open(options);
  try {
    open();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(getpid())));
    EXPECT_THAT(error.what(), HasSubstr("ergotune tune first.toml"));
    EXPECT_THAT(error.what(), HasSubstr("since 20"));
  }
}

TEST_F(Sessions, AreNamedByTheirProgramWhereNothingElseIsSaid) {
  const auto first = open();
  std::string words;
  for (const std::string& word : guardian_host::own_arguments()) words += (words.empty() ? "" : " ") + word;
  if (words.size() > 200) words = words.substr(0, 200) + "...";
  try {
    open();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(\"" + words + "\", since"));
  }
}

TEST_F(Sessions, WhatAKilledOneHadSetIsPutBackByItsGuardian) {
  const auto result = run_process({own_program(), "die-with-a-clock-set", tree.root().string(), environment.state_folder.string()});
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
  EXPECT_TRUE(eventually([&] { return list_journals(environment).empty(); }));
  const auto log = environment.state_folder / "guardian.log";
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(log) && std::filesystem::file_size(log) > 0; }));
  EXPECT_THAT(read_file(log).value_or(""), HasSubstr("is as it was before"));
}

TEST_F(Sessions, TheGuardianIsNoCommandForPeople) {
  EXPECT_EQ(run_process({own_program(), "test-guardian"}).exit_code, 2);
  EXPECT_EQ(run_process({own_program(), "test-guardian", "--session", "1"}).exit_code, 2);
}

TEST_F(Sessions, WithoutAJournalNothingIsChanged) {
  auto session = open();
  // The folder vanishes: the journal cannot be written any more.
  std::filesystem::rename(environment.state_folder, state.root() / "gone");
  const auto result = session->set(kCore, 1020);
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(result.message, HasSubstr("journal"));
  EXPECT_EQ(tree.contents(), before);
  std::filesystem::rename(state.root() / "gone", environment.state_folder);
}

TEST_F(Sessions, WithoutAStateFolderNothingOpens) {
  environment.state_folder = "/proc/nowhere";
  EXPECT_THROW(open(), UserError);
}

TEST_F(Sessions, WithoutAGuardianNothingOpens) {
  enable_guardian_verb("broken-guardian");  // no verb of this program: it ends at once
  ControlSessionOptions options;
  options.guardian_timeout = 0.5;
  try {
    open(options);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("guardian"));
  }
  enable_guardian_verb("test-guardian");
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, AKilledGuardianIsReplaced) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  const pid_t first = session->guardian_pid();
  kill(first, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->guardian_pid() > 0 && session->guardian_pid() != first; }));
  EXPECT_THAT(session->notes(), SizeIs(1));
  ASSERT_TRUE(session->set(kCore, 306).ok());
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, WhenNoOtherGuardianCanBeStartedEverythingIsPutBackAtOnce) {
  ControlSessionOptions options;
  options.guardian_timeout = 5;
  auto session = open(options);
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  enable_guardian_verb("broken-guardian");
  kill(session->guardian_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
  EXPECT_TRUE(eventually([&] { return !session->notes().empty(); }));
  EXPECT_FALSE(session->set(kCore, 306).ok());
  enable_guardian_verb("test-guardian");
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, TheGuardianIgnoresTheSignalsItCan) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  const pid_t guardian = session->guardian_pid();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE}) kill(guardian, signal);
  usleep(100000);
  EXPECT_EQ(session->guardian_pid(), guardian);
  EXPECT_NE(getsid(guardian), getsid(0)) << "its own session: out of reach of our process group and terminal";
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, AChildThatOutlivesTheSessionDoesNotHoldUpTheGuardian) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  int forked[2];
  ASSERT_EQ(pipe(forked), 0);
  const pid_t child = fork();
  if (child ==
      0) {  // a fork without exec keeps every descriptor, the guardian's socket and the lock among them
    char byte;
    (void)!read(forked[0], &byte, 1);
    _exit(0);
  }
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(tree.contents(), before);
  (void)!write(forked[1], "x", 1);
  close(forked[0]);
  close(forked[1]);
}

TEST_F(Sessions, AStaleJournalIsReplayedBeforeANewSession) {
  {
    auto control = open_control("tegra", environment);
    Journal journal{"tegra",        "tegra", control->device_key(), boot_id(), 1 << 22, 1,
                    "the dead one", 1.7e9,   control->snapshot()};
    StateFolder::open(environment.state_folder).write(journal);
    ASSERT_TRUE(control->set(kCore, 1020).ok());
  }
  auto session = open();
  EXPECT_EQ(tree.contents(), before) << "put back before the new session reads what is there";
  ASSERT_THAT(session->notes(), SizeIs(1));
  EXPECT_THAT(session->notes()[0], HasSubstr("the dead one"));
}

TEST_F(Sessions, AForeignLockIsRefusedUnlessTheUserInsists) {
  control_trees::add_amdgpu(tree);
  tree.put(std::string(control_trees::kAmdCard) + "/power_dpm_force_performance_level", "manual");
  const auto open_amd = [&](bool take_over) {
    ControlSessionOptions options;
    options.take_over = take_over;
    return ControlSession::open(open_control("amdgpu:card0", environment), options);
  };
  try {
    open_amd(false);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--take-over"));
    EXPECT_THAT(error.what(), HasSubstr("manual"));
  }
  EXPECT_THAT(open_amd(true)->notes(), SizeIs(1));
}

TEST_F(Sessions, OnlyWhatWasTouchedIsPutBack) {
  control_trees::add_amdgpu(tree);
  auto session = ControlSession::open(open_control("amdgpu:card0", environment));
  ASSERT_TRUE(session->set(ControlQuantity::power_limit_w, 200).ok());
  const auto levels_journalled = [&] {
    const auto steps = list_journals(environment).at(0).steps;
    return std::count_if(steps.begin(), steps.end(),
                         [](const auto& step) { return step.kind == "amdgpu-levels"; });
  };
  EXPECT_EQ(levels_journalled(), 0);
  ASSERT_TRUE(session->set(kCore, 800).ok());
  EXPECT_EQ(levels_journalled(), 1) << "the memory clock was not touched";
}

TEST_F(Sessions, AreRefusedWhereControlsAreForbidden) {
  auto control = open_control("tegra", environment);
  setenv("ERGOTUNE_FORBID_CONTROLS", "1", 1);
  EXPECT_THROW(ControlSession::open(std::move(control)), UserError);
  unsetenv("ERGOTUNE_FORBID_CONTROLS");
}

TEST(GuardianReport, SurvivesTheSocket) {
  RestoreReport report;
  report.device = "nvml:0";
  report.complete = false;
  auto& outcome = report.outcomes.emplace_back();
  outcome.step = {"k", "t", "v"};
  outcome.result = {ControlStatus::timeout, "slow"};
  RestoreReport read;
  ASSERT_TRUE(parse_report(format_report(report), read));
  EXPECT_EQ(read.device, "nvml:0");
  EXPECT_FALSE(read.complete);
  ASSERT_THAT(read.outcomes, SizeIs(1));
  EXPECT_EQ(read.outcomes[0].result.status, ControlStatus::timeout);
  const auto text = format_report(report);
  EXPECT_FALSE(parse_report(text.substr(0, text.size() / 2), read)) << "a guardian that died while it spoke";
}

TEST_F(Sessions, WhatCouldNotBePutBackIsToldAtTheEndOfTheProcess) {
  take_failed_restores();
  {
    ControlSessionOptions options;
    options.restore_attempts = 1;
    auto session = open(options);
    ASSERT_TRUE(session->set(kCore, 1020).ok());
    std::filesystem::remove(tree.real(std::string(kTegraGpu) + "/min_freq"));
    std::filesystem::create_directory(tree.real(std::string(kTegraGpu) + "/min_freq"));
  }
  const auto reports = take_failed_restores();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(words_of(reports.front()), HasSubstr("min_freq"));
  EXPECT_THAT(words_of(reports.front()), HasSubstr("ergotune clocks restore"));
  EXPECT_THAT(take_failed_restores(), SizeIs(0)) << "told once";
}

TEST_F(Sessions, ReadBackWhatTheyHaveSet) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  EXPECT_TRUE(session->check().ok());
  tree.put(std::string(kTegraGpu) + "/max_freq", "1300500000");  // somebody else
  const auto result = session->check();
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(result.message, HasSubstr("1020"));
  EXPECT_THAT(result.message, HasSubstr("1300.5"));
  session->doubt();
  EXPECT_TRUE(session->set(kCore, 1020).ok());
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/max_freq"), "1020000000");
}

}  // namespace
}  // namespace ergotune
