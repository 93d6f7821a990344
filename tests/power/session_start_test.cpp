// How control sessions begin: who is refused, and named to whom; and what earlier ones have left behind.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "base/process/process.hpp"
#include "power/guardian/journal.hpp"
#include "power/sessions.hpp"

namespace ergotune {
namespace {

using control_trees::kTegraGpu;
using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

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
  try {
    open_amd(false);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--take-over"));
    EXPECT_THAT(error.what(), HasSubstr("manual"));
  }
  EXPECT_THAT(open_amd(true)->notes(), SizeIs(1));
}

TEST_F(Sessions, WithoutAStateFolderNothingOpens) {
  environment.state_folder = "/proc/nowhere";
  EXPECT_THROW(open(), UserError);
}

}  // namespace
}  // namespace ergotune
