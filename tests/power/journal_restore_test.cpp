// Journals that are carried out: what is told before each step, what is left out, and what is damaged on the way; and what the
// disk does to those that are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/process.hpp"
#include "ergotune/base/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian_report.hpp"
#include "power/journal.hpp"
#include "power/restore_process.hpp"

namespace ergotune {
namespace {

using control_trees::kTegraGpu;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
constexpr auto kOpening = RestoreRound::kOpening;

struct RestoredJournals : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::unique_ptr<Control> control;
  std::optional<StateFolder> folder;
  std::filesystem::path file;
  Journal journal;
  RestoreRound round;
  std::vector<std::size_t> told;
  void SetUp() override {
    control_trees::add_tegra(tree);
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
    environment.state_folder = state.root() / "state";
    control = open_control("tegra", environment);
    folder = StateFolder::open(environment.state_folder);
    journal.device = journal.reopen_id = "tegra";
    journal.device_key = control->device_key();
    journal.boot_id = boot_id();
    journal.steps = control->snapshot();
    file = folder->journal_file(journal.device_key);
    folder->write(journal);
    ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1020).ok());
    round.attempts = 1;
    round.about_to = [this](std::size_t position) { told.push_back(position); };
  }
  RestoreReport restore() { return restore_journal(*folder, file, environment, round); }
  std::string clock() const { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
  std::string gate() const { return tree.get(std::string(kTegraGpu) + "/device/railgate_enable"); }
  void damage() const { std::ofstream(file) << "no journal"; }
  /// A folder where a file is looked for.
  static void block(const std::filesystem::path& path) {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
  }
};

TEST_F(RestoredJournals, TheDeviceIsOpenedWhereItIsNotAndForEveryFurtherTry) {
  EXPECT_TRUE(restore().complete);
  EXPECT_THAT(told, ElementsAre(kOpening, 0, 1));
  folder->write(journal);
  told.clear();
  round.control = control.get();
  EXPECT_TRUE(restore().complete);
  EXPECT_THAT(told, ElementsAre(0, 1)) << "it was given";
  folder->write(journal);
  block(tree.real(std::string(kTegraGpu) + "/min_freq"));
  told.clear();
  EXPECT_FALSE(restore().complete);
  EXPECT_THAT(told, ElementsAre(0, 1)) << "once";
  told.clear();
  round.attempts = 2;
  EXPECT_FALSE(restore().complete);
  EXPECT_THAT(told, ElementsAre(0, 1, kOpening, 0)) << "what was done is not done again";
}

TEST_F(RestoredJournals, WhatIsLeftOutStaysAndIsSaid) {
  round.left_out = {{1, "it hangs"}};
  const auto report = restore();
  EXPECT_FALSE(report.complete);
  ASSERT_EQ(report.outcomes.size(), 2u);
  EXPECT_TRUE(report.outcomes[0].result.ok());
  EXPECT_EQ(report.outcomes[1].result.message, "it hangs");
  EXPECT_EQ(clock(), "1300500000");
  EXPECT_EQ(gate(), "0");
  EXPECT_TRUE(std::filesystem::exists(file));
  round.left_out = {{2, "beyond the last"}};
  EXPECT_TRUE(restore().complete);
  EXPECT_EQ(gate(), "1");
}

TEST_F(RestoredJournals, OneThatIsDamagedIsCarriedOutByNobody) {
  damage();
  for (const auto& report : {restore(), restore_apart(*folder, file, environment, round)}) {
    EXPECT_FALSE(report.complete);
    EXPECT_THAT(report.summary, HasSubstr("damaged"));
  }
  EXPECT_EQ(clock(), "1020000000");
}

TEST_F(RestoredJournals, OneThatCannotBeClearedIsNotDone) {
  round.about_to = [this](std::size_t position) {
    if (position == 1) block(file);
  };
  const auto report = restore();
  EXPECT_FALSE(report.complete);
  EXPECT_THAT(report.summary, HasSubstr("cannot clear the journal"));
}

TEST_F(RestoredJournals, OnesThatAreLeftAreCarriedOutWhereThatIsAllowed) {
  setenv("ERGOTUNE_FORBID_CONTROLS", "1", 1);
  EXPECT_THAT(replay_stale_journals(environment), IsEmpty());
  unsetenv("ERGOTUNE_FORBID_CONTROLS");
  EXPECT_EQ(clock(), "1020000000");
  const auto incomplete = [&] {
    const auto reports = replay_stale_journals(environment);
    return reports.size() == 1 && !reports[0].complete ? reports[0].summary : "";
  };
  block(folder->lock_file(journal.device_key));
  EXPECT_THAT(incomplete(), HasSubstr("cannot use the lock"));
  EXPECT_EQ(clock(), "1020000000");
  std::filesystem::remove(folder->lock_file(journal.device_key));
  const auto reports = replay_stale_journals(environment);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].complete);
  EXPECT_EQ(clock(), "1300500000");
  damage();
  EXPECT_THAT(incomplete(), HasSubstr("put aside as *.damaged"));
  environment.state_folder = file.string() + ".damaged";
  EXPECT_THAT(incomplete(), HasSubstr("is a link or no folder"));
}

// The process of its own, by hand.
TEST_F(RestoredJournals, AProcessOfItsOwnTellsWhatItIsAt) {
  journal.steps.assign(12, journal.steps.at(1));
  folder->write(journal);
  const auto run = [&](const std::filesystem::path& state_folder, const std::vector<std::string>& left_out) {
    std::vector<std::string> words{own_program(), "test-guardian", kRestoreWord, file, state_folder, tree.root(), "", "1", "1"};
    words.insert(words.end(), left_out.begin(), left_out.end());
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto process = ChildProcess::start(words, {}, ends[1]);
    ::close(ends[1]);
    std::string text;
    for (char byte; ::read(ends[0], &byte, 1) == 1;) text += byte;
    ::close(ends[0]);
    return std::pair{process.wait(60).value_or(-1) >> 8, text};
  };
  auto [code, text] = run(environment.state_folder, {"10", "it hangs", "3", "it aborts", "4"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(text, HasSubstr("at 0\nat 1\nat 2\nat 4\n"));
  EXPECT_THAT(text, HasSubstr("at 9\nat 11\n"));
  RestoreReport report;
  ASSERT_TRUE(parse_report(text.substr(text.find('{')), report)) << text;
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.outcomes.at(10).result.message, "it hangs");
  EXPECT_EQ(report.outcomes.at(3).result.message, "it aborts");
  EXPECT_EQ(gate(), "1");
  ::chmod(environment.state_folder.c_str(), 0777);
  EXPECT_EQ(run(environment.state_folder, {}).first, 2) << "a folder that is not to be trusted";
  EXPECT_EQ(run_process({own_program(), "test-guardian", kRestoreWord, file}).exit_code, 2) << "too few words";
}

// What the disk does to a journal. Runs itself below tests/fakes/faults.
TEST_F(RestoredJournals, AreWrittenAndReadWholeOrNotAtAll) {
  struct Fault {
    const char *what, *words;
  };
  constexpr Fault kFaults[] = {{"call=write,error=28", "cannot write"},
                               {"call=write,error=4,times=3", ""},
                               {"call=write,error=0,times=3", ""},
                               {"call=fsync,error=5", "cannot make the journal durable"},
                               {"call=fsync,error=5,nth=2", "cannot make durable"},
                               {"call=rename,error=5", "cannot put the journal in place"},
                               {"call=read,error=5", "cannot read"},
                               {"call=read,error=4,times=3", ""},
                               {"call=read,error=0,times=3", ""}};
  const char* here = ::getenv("ERGOTUNE_FAULT");
  if (!here) {
    for (const auto& fault : kFaults) {
      ProcessOptions options;
      options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"},
                             {"ERGOTUNE_FAULT", std::string(fault.what) + ",path=faulty"}};
      options.timeout = 60;
      const auto result = run_process({own_program(), "--gtest_filter=RestoredJournals.AreWrittenAndReadWholeOrNotAtAll"}, options);
      EXPECT_EQ(result.exit_code, 0) << fault.what << result.out << result.err;
    }
    return;
  }
  const auto place = StateFolder::open(state.root() / "faulty");
  journal.command = std::string(30000, 'c');
  std::string words;
  try {
    place.write(journal);
    EXPECT_EQ(place.read(place.journal_file(journal.device_key))->command, journal.command);
  } catch (const Error& error) {
    words = error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(place.journal_file(journal.device_key).string() + ".new")) << "B16";
  for (const auto& fault : kFaults) {
    if (!std::string(here).starts_with(std::string(fault.what) + ",path")) continue;
    if (*fault.words)
      EXPECT_THAT(words, HasSubstr(fault.words));
    else
      EXPECT_EQ(words, "");
  }
}

}  // namespace
}  // namespace ergotune
