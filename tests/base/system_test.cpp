#include <gmock/gmock.h>

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "base/driver_table.hpp"
#include "base/hash.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/sysfs.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

TEST(Processors, AreThoseThatTheProcessMayRunOn) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_processors(), static_cast<unsigned>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1u);
  ::sched_setaffinity(0, sizeof before, &before);
}

TEST(Processes, CollectBothStreamsAndTheExitCode) {
  const auto result = run_process({"sh", "-c", "cat; echo two >&2; exit 3"}, {.input = "one"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "one");
  EXPECT_EQ(result.err, "two\n");
}

TEST(Processes, AShellTakesQuotedWordsAsTheyAre) {
  EXPECT_EQ(shell_command({"ergotune", "a=b", "x y", ""}), "ergotune a=b 'x y' ''");
  const std::string message = "it's \"$HOME\" `;*\n~";
  EXPECT_EQ(run_process({"sh", "-c", "printf %s " + shell_word(message)}).out, message);
}

TEST(Processes, AreKilledWithTheirChildrenAtTheTimeLimit) {
  const auto result = run_process({"sh", "-c", "sleep 60 & sleep 60"}, {.timeout = 0.2});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, 9);
}

TEST(Processes, SayWhenAProgramIsMissing) { EXPECT_THROW(run_process({"/no/such/program"}), Error); }

TEST(Processes, DieWithTheirOwner) {
  pid_t pid = 0;
  {
    const auto child = ChildProcess::start({"sleep", "60"});
    pid = child.pid();
    EXPECT_TRUE(std::filesystem::exists("/proc/" + std::to_string(pid)));
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
}

// A worker's compilers are started by whichever of its threads is free.
TEST(Processes, AreFoundBelowEveryThreadOfTheirParent) {
  std::promise<pid_t> started;
  std::promise<void> seen;
  std::thread starter([&] {
    const auto child = ChildProcess::start({"sh", "-c", "sleep 60 & wait"});
    started.set_value(child.pid());
    seen.get_future().wait();
  });
  const pid_t child = started.get_future().get();
  std::vector<pid_t> found = descendants_of(::getpid());
  for (int turn = 0; turn < 10000 && found.size() < 2; ++turn) {
    ::usleep(1000);
    found = descendants_of(::getpid());
  }
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], child);
  EXPECT_EQ(descendants_of(child), std::vector<pid_t>{found[1]});
  seen.set_value();
  starter.join();
}

TEST(SysfsTrees, ReadAndWriteBelowTheirRoot) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root.path() / "sys/class/x");
  root.write("sys/class/x/value", "42\n");
  const Sysfs sysfs(root.path());
  EXPECT_EQ(sysfs.read_integer("/sys/class/x/value"), 42);
  EXPECT_EQ(sysfs.write("/sys/class/x/value", "7"), 0);
  EXPECT_EQ(sysfs.read("/sys/class/x/value"), "7");
  EXPECT_EQ(sysfs.read("/sys/class/y"), std::nullopt);
  EXPECT_NE(sysfs.write("/sys/class/none/value", "7"), 0);
}

TEST(DynamicLibraries, SayWhatIsMissing) {
  std::string reason;
  EXPECT_FALSE(DynamicLibrary::open({"libno-such.so.1", "libno-such.so"}, &reason));
  EXPECT_THAT(reason, HasSubstr("libno-such.so.1"));
  const auto math = DynamicLibrary::open({"libm.so.6"});
  ASSERT_TRUE(math);
  double (*cosine)(double) = nullptr;
  EXPECT_TRUE(math->load(cosine, "cos"));
  EXPECT_DOUBLE_EQ(cosine(0), 1);
}

TEST(Environment, FoldersOfTheUserAreAbsolute) {
  const auto set = [](const char* name, const char* value) { value ? ::setenv(name, value, 1) : ::unsetenv(name); };
  const std::string home = environment_variable("HOME");
  set("HOME", "/home/me");
  set("ERGOTUNE_TEST_XDG", nullptr);
  EXPECT_EQ(user_folder("ERGOTUNE_TEST_XDG", ".cache"), "/home/me/.cache/ergotune");
  set("ERGOTUNE_TEST_XDG", "/else/where");
  EXPECT_EQ(user_folder("ERGOTUNE_TEST_XDG", ".cache"), "/else/where/ergotune");
  set("ERGOTUNE_TEST_XDG", "relative");
  EXPECT_EQ(user_folder("ERGOTUNE_TEST_XDG", ".cache"), "/home/me/.cache/ergotune");
  set("HOME", nullptr);
  EXPECT_EQ(user_folder("ERGOTUNE_TEST_XDG", ".cache"), "");
  EXPECT_EQ(environment_variable("HOME"), "");
  set("HOME", home.c_str());
  set("ERGOTUNE_TEST_XDG", nullptr);
}

TEST(Hashes, AreStable) {
  EXPECT_EQ(content_hash("ergotune"), content_hash("ergotune"));
  EXPECT_EQ(content_hash("a").size(), 32u);
  EXPECT_NE(content_hash("a"), content_hash("b"));
}

struct MathTable : DriverTable {
  explicit MathTable(const char* file) : DriverTable({file}) {}
  EntryPoint<double(double)> cube_root{this, "cbrt"};
  EntryPoint<double(double)> renamed{this, "new_name_of_sqrt", "sqrt"};
  EntryPoint<double(double)> optional{this, "no_such_function", Need::optional};
};
struct DemandingTable : MathTable {
  using MathTable::MathTable;
  EntryPoint<int()> one{this, "no_such_function"};
  EntryPoint<int()> two{this, "nor_this"};
};

TEST(DriverTable, EntriesAreCalledLikeFunctions) {
  const MathTable table("libm.so.6");
  ASSERT_TRUE(table.usable()) << table.problem();
  EXPECT_EQ(table.problem(), "");
  EXPECT_DOUBLE_EQ(table.cube_root(27), 3);
  EXPECT_STREQ(table.cube_root.symbol(), "cbrt");
  EXPECT_DOUBLE_EQ(table.renamed(9), 3);
  EXPECT_STREQ(table.renamed.symbol(), "sqrt");
  EXPECT_FALSE(table.optional);
}

TEST(DriverTable, WhatIsRequiredAndMissingIsNamed) {
  const DemandingTable table("libm.so.6");
  EXPECT_FALSE(table.usable());
  EXPECT_EQ(table.problem(), "libm.so.6 lacks no_such_function, nor_this");
}

TEST(DriverTable, ALibraryThatIsNotThereIsNoCrash) {
  const MathTable table("libno-such.so.1");
  EXPECT_FALSE(table.usable());
  EXPECT_FALSE(table.cube_root);
  EXPECT_NE(table.problem().find("libno-such.so.1"), std::string::npos);
  EXPECT_EQ(table.library_name(), "");
}

TEST(DriverTable, AVariableOverridesTheUsualNames) {
  EXPECT_EQ(library_names("ERGOTUNE_TEST_LIBRARY", {"a", "b"}), (std::vector<std::string>{"a", "b"}));
  ::setenv("ERGOTUNE_TEST_LIBRARY", "/x/lib.so", 1);
  EXPECT_EQ(library_names("ERGOTUNE_TEST_LIBRARY", {"a", "b"}), std::vector<std::string>{"/x/lib.so"});
  ::unsetenv("ERGOTUNE_TEST_LIBRARY");
}

}  // namespace
}  // namespace ergotune
