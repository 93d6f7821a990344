// Control sessions: journal and guardian before the first change, everything back at the end, refusals.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/guardian/journal.hpp"
#include "power/guardian_host.hpp"
#include "power/sessions.hpp"

namespace ergotune {
namespace {

/// A program that opens two sessions and prints what the second is told. Arguments: the root of the tree, the
/// state folder, and any others to be named by.
int open_twice(const std::vector<std::string>& arguments) {
  ControlEnvironment environment;
  environment.sysfs_root = arguments.at(0);
  environment.state_folder = arguments.at(1);
  const auto first = ControlSession::open(open_control("tegra", environment));
  try {
    ControlSession::open(open_control("tegra", environment));
  } catch (const UserError& error) {
    std::fputs(error.what(), stdout);
  }
  return std::fflush(stdout);
}

/// A program that has not said that it knows the guardian's verb, and prints what would be started in its place.
int name_the_guardian(const std::vector<std::string>&) {
  enable_guardian_verb("");
  std::string verb;
  std::fputs((guardian_program(verb) + " " + verb).c_str(), stdout);
  return std::fflush(stdout);
}

const guardian_host::Host kHost({{"open-twice", open_twice}, {"name-the-guardian", name_the_guardian}});

using control_trees::kTegraGpu;
using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

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
  EXPECT_EQ(report.device, "tegra");
  EXPECT_THAT(report.summary, HasSubstr("is as it was before")) << "the guardian's words";
  EXPECT_THAT(report.outcomes, SizeIs(2));
  EXPECT_EQ(tree.contents(), before);
  EXPECT_THAT(list_journals(environment), SizeIs(0));
  EXPECT_FALSE(session->set(kCore, 306).ok()) << "an ended session changes nothing";
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Sessions, TheDestructorRestores) {
  ASSERT_TRUE(open()->set(kCore, 1020).ok());
  EXPECT_EQ(tree.contents(), before);
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

TEST_F(Sessions, WithoutAGuardianNothingOpens) {
  enable_guardian_verb("broken-guardian");  // no verb of this program: it ends at once
  ControlSessionOptions options;
  options.guardian_timeout = 0.5;
  EXPECT_THAT(error_of([&] { open(options); }), HasSubstr("guardian"));
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
  take_failed_restores();
  ControlSessionOptions options;
  options.guardian_timeout = 5;
  auto session = open(options);
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  enable_guardian_verb("broken-guardian");
  kill(session->guardian_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
  EXPECT_TRUE(eventually([&] { return !session->notes().empty(); }));
  enable_guardian_verb("test-guardian");
  const auto late = session->set(kCore, 306);
  EXPECT_FALSE(late.ok()) << "it has ended";
  EXPECT_THAT(late.message, HasSubstr("restored"));
  EXPECT_EQ(tree.contents(), before);
  EXPECT_THAT(take_failed_restores(), SizeIs(0));
}

TEST_F(Sessions, SetWithANewGuardianWhereTheirsHasJustDied) {
  auto session = open();
  for (const double clock : {408.0, 510.0, 612.0, 714.0}) {
    const pid_t guardian = session->guardian_pid();
    kill(guardian, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(guardian), &info, WEXITED | WNOWAIT);
    EXPECT_TRUE(session->set(kCore, clock).ok()) << clock;
  }
  EXPECT_TRUE(session->finish().complete);
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
  if (child == 0) {  // a fork without exec keeps every descriptor, the guardian's socket and the lock among them
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

TEST_F(Sessions, WhatCouldNotBePutBackIsReportedAtTheEndOfTheProcess) {
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
  EXPECT_THAT(description_of(reports.front()), HasSubstr("min_freq"));
  EXPECT_THAT(description_of(reports.front()), HasSubstr("ergotune clocks restore"));
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

TEST_F(Sessions, TheSecondIsRefusedAndReportedAboutTheFirst) {
  ControlSessionOptions options;
  options.command = "ergotune tune first.toml";
  const auto first = open(options);
  options.wait_for_guardian = 1e6;
  const std::string message = refusal(options);
  EXPECT_THAT(message, HasSubstr(std::to_string(getpid())));
  EXPECT_THAT(message, HasSubstr("ergotune tune first.toml"));
  EXPECT_THAT(message, HasSubstr("since 20"));
  EXPECT_THAT(message, HasSubstr("two sessions on one device")) << "at once: one that lives is not waited for";
}

TEST(GuardianProgram, IsTheCommandBesideTheLibraryWhereTheProgramIsNone) {
  control_trees::Tree tree;
  const auto program = tree.root() / "lib/python3/site-packages/ergotune/program";
  std::filesystem::create_directories(program.parent_path());
  std::filesystem::create_symlink(own_program(), program);
  const auto named = [&] {
    const std::string text = run_process({program.string(), "name-the-guardian"}).out,
                      file = text.substr(0, text.find(' '));
    EXPECT_TRUE(text.ends_with(" guardian")) << text;
    return file.empty() ? file : std::filesystem::weakly_canonical(file).lexically_relative(tree.root()).string();
  };
  const auto put = [&](const std::string& file, int mode) {
    tree.put("/" + file, "#!/bin/sh");
    ::chmod(tree.real("/" + file).c_str(), static_cast<mode_t>(mode));
  };
  EXPECT_EQ(named(), "");
  put("bin/ergotune", 0755);
  EXPECT_EQ(named(), "bin/ergotune") << "of an installed package";
  put("lib/python3/site-packages/ergotune/bin/ergotune", 0644);
  EXPECT_EQ(named(), "bin/ergotune") << "what cannot be run is none";
  std::filesystem::create_directory(program.parent_path() / "ergotune");
  EXPECT_EQ(named(), "bin/ergotune") << "nor is a folder";
  put("lib/python3/site-packages/ergotune/bin/ergotune", 0755);
  EXPECT_EQ(named(), "lib/python3/site-packages/ergotune/bin/ergotune") << "the nearest";
}

TEST_F(Sessions, ADamagedJournalOpensOnlyForWhoInsists) {
  const auto folder = StateFolder::open(environment.state_folder);
  const auto damage = [&] {
    const auto file = folder.journal_file(kTegraGpu);
    std::ofstream(file) << "no journal";
    ::chmod(file.c_str(), 0600);
  };
  damage();
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("damaged"), HasSubstr("--take-over")));
  EXPECT_EQ(refusal(), "") << "it was put aside";
  damage();
  ControlSessionOptions options;
  options.take_over = true;
  EXPECT_THAT(open(options)->notes(), testing::ElementsAre(HasSubstr("put aside as *.damaged")));
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
  EXPECT_THAT(error_of([&] { open_amd(false); }), testing::AllOf(HasSubstr("--take-over"), HasSubstr("manual")));
  EXPECT_THAT(open_amd(true)->notes(), SizeIs(1));
}

TEST_F(Sessions, WithoutAStateFolderNothingOpens) {
  environment.state_folder = "/proc/nowhere";
  EXPECT_THROW(open(), UserError);
}

}  // namespace
}  // namespace ergotune
