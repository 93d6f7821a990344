// Sessions, stores and terminals as a demanding new user meets them (docs/measurements/new-user-2026-11-22.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "integration/support/command.hpp"
#include "store/sqlite/database.hpp"

namespace ergotune::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kTune{"tune", "p.toml", "--device", "host", "-q", "--no-confirm", "--no-early-stop"};

// On a CPU device configurations run one at a time, and what a signal cuts off is nobody's fault.
TEST(Tried, ALostTerminalLeavesNoCulprit) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(4000));
  const auto store = folder.path() / "ergotune.db";
  ChildProcess session = start_ergotune(folder, kTune);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(store) && stored_rows(store).size() > 2; }));
  ::kill(session.pid(), SIGHUP);
  const auto status = session.wait(20);
  ASSERT_TRUE(status && WIFEXITED(*status));
  auto again = kTune;
  again.insert(again.end(), {"--budget", "5"});
  ASSERT_EQ(ergotune(folder, again).exit_code, 0);
  for (const auto& [configuration, statuses] : stored_rows(store))
    EXPECT_NE(statuses[0], "runtime_error") << configuration;
}

// The other works on another problem: the store's lock does not keep them apart.
TEST(Tried, SessionsOnOneDeviceMeasureOneAfterAnother) {
  TemporaryFolder folder;
  ::setenv("ERGOTUNE_DEVICE_LOCK", folder.path().c_str(), 1);
  folder.write("p.toml", counting_problem(4000));
  folder.write("q.toml", counting_problem(2) + "\n[metrics]\nmore = \"turn\"\n");
  const auto store = folder.path() / "ergotune.db";
  ChildProcess first = start_ergotune(folder, kTune);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(store) && stored_rows(store).size() > 2; }));
  const std::vector<std::string> second{"tune",    "q.toml", "--device",     "host",     "--json",
                                        "--store", "q.db",   "--no-confirm", "--budget", "1s"};
  std::string line = "exec " + ergotune_program();
  for (const std::string& word : second) line += " '" + word + "'";
  ProcessOptions options;
  options.folder = folder.path().string();
  ChildProcess waiting = ChildProcess::start({"/bin/sh", "-c", line + " >out2 2>err2"}, options);
  ASSERT_TRUE(eventually(
      [&] { return text_of(folder.path() / "err2").find("waits until it has ended") != std::string::npos; }));
  EXPECT_THAT(text_of(folder.path() / "err2"), AllOf(HasSubstr("process " + std::to_string(first.pid()) + " ("),
                                                     HasSubstr("tune p.toml"), HasSubstr("ERGOTUNE_DEVICE_LOCK=off")));
  EXPECT_TRUE(stored_rows(folder.path() / "q.db").empty()) << "it does not measure meanwhile";
  std::this_thread::sleep_for(std::chrono::seconds(2));  // twice the budget
  first.kill(SIGINT);
  ASSERT_TRUE(first.wait(20));
  const auto status = waiting.wait(30);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 0) << text_of(folder.path() / "err2");
  EXPECT_EQ(stored_rows(folder.path() / "q.db").size(), 2u) << "its time begins when the device is free";
  EXPECT_GE(nlohmann::json::parse(text_of(folder.path() / "out2"))["waited_seconds"], 2);
}

TEST(Tried, WhoWaitsForADeviceCanGiveUpAndAKilledHolderHoldsNothing) {
  TemporaryFolder folder;
  ::setenv("ERGOTUNE_DEVICE_LOCK", folder.path().c_str(), 1);
  folder.write("p.toml", counting_problem(4000));
  folder.write("q.toml", counting_problem(2));
  const auto store = folder.path() / "ergotune.db";
  ChildProcess first = start_ergotune(folder, kTune);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(store) && stored_rows(store).size() > 2; }));
  ProcessOptions options;
  options.folder = folder.path().string();
  ChildProcess waiting = ChildProcess::start(
      {"/bin/sh", "-c", "exec " + ergotune_program() + " tune q.toml --device host --no-store >out2 2>err2"}, options);
  ASSERT_TRUE(eventually([&] { return text_of(folder.path() / "err2").find("waits until") != std::string::npos; }));
  waiting.kill(SIGINT);
  const auto status = waiting.wait(20);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 1) << "no answer";
  EXPECT_EQ(text_of(folder.path() / "out2").find("No configuration worked"), std::string::npos) << "none was tried";
  first.kill(SIGKILL);
  first.wait(20);
  EXPECT_EQ(ergotune(folder, {"tune", "q.toml", "--device", "host", "--no-store", "-q", "--no-confirm"}).exit_code, 0);
}

TEST(Tried, ASampleOfRecordingsIsTheSpaceThatIsSearched) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(50));
  folder.write("r.csv", "turn,status,time\n7,ok,0.2\n20,ok,0.1\n41,ok,0.4\n");
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "replay:r.csv", "--no-store"});
  EXPECT_THAT(result.err, HasSubstr("3 of the 50"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("3 configurations evaluated of 3"), Not(HasSubstr("not recorded"))));
}

TEST(Tried, TheSessionWorkedOnLastIsShownAndAnEmptyOneHidesNone) {
  TemporaryFolder folder;
  folder.write("a.csv", "bx,status,time\n1,ok,0.2\n2,ok,0.1\n");
  folder.write("b.csv", "by,status,time\n1,ok,0.2\n2,ok,0.1\n");
  const auto tune = [&](const std::string& name, const std::string& budget) {
    EXPECT_EQ(ergotune(folder, {"tune", name, "--device", "replay:" + name, "-q", "--budget", budget}).exit_code, 0);
  };
  tune("a.csv", "1");
  tune("b.csv", "2");
  tune("a.csv", "2");
  EXPECT_EQ(json_of(ergotune(folder, {"show", "--json"}))["problem"], "a");
  // begun, and ended before anything was measured
  folder.write("p.toml", counting_problem(3));
  ergotune(folder, {"tune", "p.toml", "--device", "host", "-q", "--budget", "1", "--no-confirm"});
  Database(folder.path() / "ergotune.db", false).execute("DELETE FROM measurements WHERE session = 3");
  EXPECT_EQ(json_of(ergotune(folder, {"show", "--json"}))["problem"], "a");
}

TEST(Tried, OtherSettingsBeginASessionThatNamesTheResultsItLeaves) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(5) + "\n[metrics]\nmore = \"turn\"\n");
  const auto tune = [](const std::string& budget) {
    return std::vector<std::string>{"tune",        "p.toml",   "--device", "host", "--no-confirm",
                                    "--objective", "max more", "--budget", budget};
  };
  const auto first = tune("4");
  auto second = tune("1");  // measures the default alone, which is not the best
  second.insert(second.end(), {"--precision", "0.2"});
  // what is exported is what is shown: the session that was worked on last
  const auto exported = [&](int session) {
    const auto shown = json_of(ergotune(folder, {"show", "ergotune.db", "--json"}));
    EXPECT_EQ(shown["session"], session);
    const ProcessResult header = ergotune(folder, {"export", "ergotune.db", "--format", "header"});
    EXPECT_THAT(header.out, HasSubstr("#define turn " + shown["best"]["configuration"]["turn"].dump() + "\n"));
    return header.out;
  };
  ASSERT_EQ(ergotune(folder, first).exit_code, 0);
  const ProcessResult other = ergotune(folder, second);
  EXPECT_THAT(other.err, AllOf(HasSubstr("session 1"), HasSubstr("precision 0.2")));
  const std::string of_second = exported(2);
  const ProcessResult again = ergotune(folder, first);
  EXPECT_THAT(again.err, Not(HasSubstr("precision"))) << "the first session goes on";
  EXPECT_NE(exported(1), of_second);
}

TEST(Tried, ALinkedProblemFindsWhatStandsBesideIt) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "real");
  std::ofstream(folder.path() / "real/x.h") << "#define TWICE 2\n";
  std::ofstream(folder.path() / "real/k.c") << "#include \"x.h\"\nvoid work(const float* a, float* b) { for (int i = "
                                               "0; i < 4; ++i) b[i] = TWICE * a[i] + 0 * turn; }\n";
  std::ofstream(folder.path() / "real/a.bin") << std::string(16, '\0');
  std::ofstream(folder.path() / "real/p.toml")
      << "[tune]\nstore = \"mine.db\"\n[parameters]\nturn = [1, 2]\n[kernel]\nfunction = \"work\"\nsource = "
         "\"k.c\"\narguments = [\n{ name = \"a\", type = \"float32\", count = 4, fill = { file = \"a.bin\" } },\n"
         "{ name = \"b\", type = \"float32\", count = 4, access = \"write\" } ]\n";
  std::filesystem::create_symlink("real/p.toml", folder.path() / "link.toml");
  const auto result = ergotune(folder, {"tune", "link.toml", "--device", "host", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Results: mine.db")) << "where the command was called";
}

TEST(Tried, ScoresReadEveryKindOfRecordingInAFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "data");
  std::string rows = "bx,status,time\n";
  for (int i = 1; i <= 30; ++i) rows += std::to_string(i) + ",ok," + std::to_string(0.1 + 0.01 * ((i * 7) % 30)) + "\n";
  folder.write("data/plain.csv", rows);
  ASSERT_EQ(ergotune(folder, {"import", "data/plain.csv", "--store", "data/stored.db", "--device", "X"}).exit_code, 0);
  const auto document =
      json_of(ergotune(folder, {"score", "--data", "data", "--strategies", "random", "--repeats", "2", "--json"}));
  EXPECT_EQ(document["spaces"].size(), 2u) << document;
}

}  // namespace
}  // namespace ergotune::test
