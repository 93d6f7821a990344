// The journal: what is written is what is read, whatever is cut or changed is noticed, and only its owner can
// write it.
#include "power/guardian/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "fakes/control_trees/control_trees.hpp"

namespace ergotune {
namespace {

using control_trees::kTegraGpu;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Journal sample() {
  Journal journal;
  journal.device = "nvml:0";
  journal.reopen_id = "nvml:GPU-1";
  journal.device_key = "GPU-1";
  journal.boot_id = boot_id();
  journal.pid = 4242;
  journal.start_ticks = 99;
  journal.command = "ergotune tune \"a b\" \xff\x01";
  journal.since = 1.75e9;
  journal.steps = {{"nvml-power-limit", "GPU-1", "250000"},
                   {"nvml-locked-core-clocks", "GPU-1", "", ControlQuantity::core_clock_mhz}};
  return journal;
}

TEST(Journal, AnyTextSurvives) {
  EXPECT_TRUE(rc::check([](const std::string& kind, const std::string& target, const std::string& value) {
    auto journal = sample();
    const auto printable = [](std::string text) {
      for (char& c : text) c = static_cast<char>(c & 0x7f);
      return text;
    };
    journal.steps = {{printable(kind), printable(target), printable(value)}};
    const auto read = parse_journal(format_journal(journal));
    RC_ASSERT(read.steps[0].kind == journal.steps[0].kind);
    RC_ASSERT(read.steps[0].target == journal.steps[0].target);
    RC_ASSERT(read.steps[0].value == journal.steps[0].value);
  }));
}

TEST(Journal, ACutOneIsNoticedAtEveryPlace) {
  const auto text = format_journal(sample());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_THROW(parse_journal(text.substr(0, length)), Error) << length;
}

TEST(Journal, AChangedOneIsNoticed) {
  auto text = format_journal(sample());
  text.replace(text.find("250000"), 6, "350000");
  EXPECT_THROW(parse_journal(text), Error);
}

struct StateFolderTest : ::testing::Test {
  control_trees::Tree tree;
  std::filesystem::path path = tree.root() / "state";
};

TEST_F(StateFolderTest, IsMadeForItsOwnerOnly) {
  StateFolder::open(path);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(StateFolderTest, IsRefusedWhenOthersCanWriteOrItIsALink) {
  StateFolder::open(path);
  chmod(path.c_str(), 0777);
  EXPECT_THROW(StateFolder::open(path), UserError);
  chmod(path.c_str(), 0700);
  const auto link = tree.root() / "link";
  std::filesystem::create_directory_symlink(path, link);
  EXPECT_THROW(StateFolder::open(link), UserError);
}

TEST_F(StateFolderTest, RefusesAJournalThatOthersCanWriteAndALink) {
  const auto folder = StateFolder::open(path);
  folder.write(sample());
  const auto file = folder.journal_file("GPU-1");
  EXPECT_TRUE(folder.read(file).has_value());
  chmod(file.c_str(), 0666);
  EXPECT_THROW(folder.read(file), Error);
  chmod(file.c_str(), 0600);
  std::filesystem::rename(file, tree.root() / "elsewhere");
  std::filesystem::create_symlink(tree.root() / "elsewhere", file);
  EXPECT_THROW(folder.read(file), Error);
}

TEST_F(StateFolderTest, TheLockIsExclusiveAndNamesItsHolder) {
  const auto folder = StateFolder::open(path);
  DeviceHolder holder;
  {
    const auto lock = DeviceLock::try_take(folder, "GPU-1");
    ASSERT_TRUE(lock);
    lock->name_holder({getpid(), "the first", 1.75e9, true});
    EXPECT_FALSE(DeviceLock::try_take(folder, "GPU-1", &holder));
    EXPECT_EQ(holder.pid, getpid());
    EXPECT_EQ(holder.command, "the first");
    EXPECT_TRUE(holder.alive);
    EXPECT_TRUE(DeviceLock::try_take(folder, "GPU-2")) << "another device is free";
  }
  EXPECT_TRUE(DeviceLock::try_take(folder, "GPU-1"));
}

struct Replay : StateFolderTest {
  ControlEnvironment environment;
  void SetUp() override {
    control_trees::add_tegra(tree);
    environment.sysfs_root = tree.root();
    environment.state_folder = path;
  }
  // What a session that was killed together with its guardian leaves.
  void leave_behind(const std::string& boot) {
    auto control = open_control("tegra", environment);
    Journal journal = sample();
    journal.device = journal.reopen_id = "tegra";
    journal.device_key = control->device_key();
    journal.boot_id = boot;
    journal.pid = 1 << 22;
    journal.steps = control->snapshot();
    StateFolder::open(path).write(journal);
    ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1020).ok());
  }
  std::string max_frequency() { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
};

TEST_F(Replay, AfterARestartTheJournalIsClearedAndNothingIsWritten) {
  leave_behind("another boot");
  const auto reports = replay_stale_journals(environment);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_TRUE(reports[0].complete);
  EXPECT_THAT(reports[0].summary, HasSubstr("restarted"));
  EXPECT_EQ(max_frequency(), "1020000000") << "after a restart what is set is the machine's own";
  EXPECT_THAT(list_journals(environment), SizeIs(0));
}

TEST_F(Replay, AfterARestartFilesArePutBackWhenRequested) {
  leave_behind("another boot");
  EXPECT_TRUE(replay_stale_journals(environment, true).at(0).complete);
  EXPECT_EQ(max_frequency(), "1300500000");
}

TEST_F(Replay, OneFailureDoesNotSkipTheNext) {
  leave_behind(boot_id());
  const auto gate = tree.real(std::string(kTegraGpu) + "/device/railgate_enable");
  const auto min = tree.real(std::string(kTegraGpu) + "/min_freq");
  std::filesystem::remove(min);
  std::filesystem::create_directory(min);  // cannot be written, for root neither
  const auto folder = StateFolder::open(path);
  const auto report = restore_journal(folder, folder.journal_file(kTegraGpu), environment, {.attempts = 2});
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(max_frequency(), "1300500000") << "the other half of the pair";
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/device/railgate_enable"), "1") << "the step after the failing one";
  EXPECT_THAT(list_journals(environment), SizeIs(1)) << "the journal is kept until everything is done";
  std::filesystem::remove(min);
  tree.put(std::string(kTegraGpu) + "/min_freq", "1020000000");
  EXPECT_TRUE(restore_journal(folder, folder.journal_file(kTegraGpu), environment).complete);
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/min_freq"), "306000000");
}

TEST_F(Replay, ADamagedJournalIsPutAsideAndSaidSo) {
  leave_behind(boot_id());
  const auto file = StateFolder::open(path).journal_file(kTegraGpu);
  std::ofstream(file, std::ios::app) << "x";
  const auto reports = replay_stale_journals(environment);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_FALSE(reports[0].complete);
  EXPECT_THAT(reports[0].summary, HasSubstr("damaged"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THAT(replay_stale_journals(environment), SizeIs(0)) << "it blocks nobody afterwards";
}

TEST_F(Replay, AJournalWhoseSessionLivesIsLeftAlone) {
  leave_behind(boot_id());
  const auto folder = StateFolder::open(path);
  const auto lock = DeviceLock::try_take(folder, kTegraGpu);
  EXPECT_THAT(replay_stale_journals(environment), SizeIs(0));
  EXPECT_EQ(max_frequency(), "1020000000");
}

}  // namespace
}  // namespace ergotune
