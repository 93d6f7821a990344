// Journals that are carried out: what is told before each step, what is left out, and what is damaged on the way; and
// what the disk does to those that are written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
