// The journal: what is written is what is read, whatever is cut or changed is noticed, and only its owner can write it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/guardian/journal.hpp"

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

using ::testing::IsEmpty;

struct RestoredJournals : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::unique_ptr<Control> control;
  std::optional<StateFolder> folder;
  std::filesystem::path file;
  Journal journal;
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
  }
  std::string clock() const { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
  void damage() const { std::ofstream(file) << "no journal"; }
  /// A folder where a file is looked for.
  static void block(const std::filesystem::path& path) {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
  }
};

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
      const auto result =
          run_process({own_program(), "--gtest_filter=RestoredJournals.AreWrittenAndReadWholeOrNotAtAll"}, options);
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
