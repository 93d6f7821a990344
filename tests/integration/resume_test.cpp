// Ctrl-C ends cleanly with the best so far, and a resume goes on where it ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

/// Starts a long session on c.toml and returns when it has stored some rows.
ChildProcess long_session(const TemporaryFolder& folder, std::size_t rows) {
  ChildProcess session = start_ergotune(
      folder, {"tune", "c.toml", "--device", "host", "--strategy", "random", "--store", "c.db", "--jobs", "1"});
  const std::filesystem::path store = folder.path() / "c.db";
  const double deadline = host_seconds() + 60;
  while (host_seconds() < deadline && (!std::filesystem::exists(store) || stored_rows(store).size() < rows)) {
    ::usleep(50'000);
  }
  return session;
}

TEST(Resume, CtrlCPrintsTheBestSoFarAndTheNextRunGoesOn) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(500));
  ChildProcess session = long_session(folder, 4);
  const std::filesystem::path store = folder.path() / "c.db";
  ::kill(session.pid(), SIGINT);
  ::usleep(20'000);
  ::kill(session.pid(), SIGINT);  // as `timeout` does: to the process, and to its group
  const auto status = session.wait(20);
  ASSERT_TRUE(status) << "Ctrl-C does not end it";
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
  const std::string out = text_of(folder.path() / "out");
  EXPECT_THAT(out, HasSubstr("interrupted"));
  EXPECT_THAT(out, HasSubstr("Best configuration"));
  EXPECT_THAT(out, HasSubstr("the same command")) << "how to go on";
  const auto before = stored_rows(store);
  ASSERT_GE(before.size(), 4u);
  for (const auto& [configuration, statuses] : before) {
    EXPECT_NE(statuses[0], "runtime_error") << "what Ctrl-C cut off is not held against " << configuration;
  }
  const std::size_t target = before.size() + 2;
  const auto document =
      json_of(ergotune(folder, {"tune", "c.toml", "--device", "host", "--strategy", "random", "--store", "c.db",
                                "--budget", std::to_string(target), "--no-confirm", "--json", "--quiet"}));
  EXPECT_EQ(document["resumed"], before.size());
  EXPECT_EQ(document["evaluated"], 2);
  for (const auto& [configuration, statuses] : stored_rows(store)) EXPECT_EQ(statuses.size(), 1u) << configuration;
}

TEST(Resume, VerificationAgainstTheFirstCorrectOutputsHoldsAcrossSessions) {
  TemporaryFolder folder;
  std::string text = faults_problem();
  const std::size_t from = text.find("mode = ["), to = text.find(']', from);
  text.replace(from, to - from + 1, "mode = [\"good\", \"wrong\"]");
  folder.write("f.toml", text);
  const std::vector<std::string> first{"tune",         "f.toml",  "--device",    "host",     "--strategy",
                                       "brute_force",  "--store", "f.db",        "--budget", "1",
                                       "--no-confirm", "--json",  "--precision", "1000%"};
  EXPECT_EQ(json_of(ergotune(folder, first))["statuses"]["ok"], 1);
  // The second session meets the wrong one first, and would take it for the truth.
  const std::vector<std::string> second{"tune",        "f.toml",  "--device", "host",         "--strategy",
                                        "brute_force", "--store", "f.db",     "--no-confirm", "--json"};
  EXPECT_EQ(json_of(ergotune(folder, second))["statuses"]["wrong_result"], 1);
}

TEST(Resume, ASecondSessionOnTheSameResultsIsReportedWhoHoldsThem) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(500));
  const auto tune = [&](const char* budget) {
    return ergotune(folder, {"tune", "c.toml", "--device", "host", "--strategy", "random", "--store", "c.db",
                             "--budget", budget, "--no-confirm", "--json", "--quiet"});
  };
  const std::filesystem::path store = folder.path() / "c.db", lock = folder.path() / "c.db-session1.lock";
  ChildProcess first = long_session(folder, 1);
  const ProcessResult second = tune("400");
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.out, "");
  EXPECT_THAT(second.err, HasSubstr("process " + std::to_string(first.pid())));
  EXPECT_THAT(second.err, HasSubstr("--store"));

  ::kill(first.pid(), SIGKILL);
  ASSERT_TRUE(first.wait(20));
  EXPECT_TRUE(std::filesystem::exists(lock)) << "nobody was left to remove it";
  const std::size_t known = stored_rows(store).size();
  const ProcessResult third = tune(std::to_string(known + 3).c_str());
  EXPECT_EQ(third.exit_code, 0) << "a dead session holds nothing: " << third.err;
  EXPECT_FALSE(std::filesystem::exists(lock));
  for (const auto& [configuration, statuses] : stored_rows(store)) EXPECT_EQ(statuses.size(), 1u) << configuration;
  EXPECT_EQ(integrity(store), "ok");
}

TEST(Resume, FailuresAreTriedAgainWhenRequestedFor) {
  TemporaryFolder folder;
  std::string text = faults_problem();
  const std::size_t from = text.find("mode = ["), to = text.find(']', from);
  text.replace(from, to - from + 1, "mode = [\"good\", \"segfault\", \"ended\", \"compile_error\"]");
  // What crashes does so only until the file is there.
  const std::string file = (folder.path() / "mended").string();
  const std::string crash = "*(volatile int*)8 = 1;", at = "if (mode == segfault) ";
  text.replace(text.find(at + crash), (at + crash).size(),
               at + "{ FILE* f = fopen(\"" + file + "\", \"r\"); if (f) fclose(f); else " + crash + " }");
  folder.write("f.toml", text);
  const auto tune = [&](std::vector<std::string> more) {
    std::vector<std::string> command{"tune",        "f.toml",      "--device", "host",         "--strategy",
                                     "brute_force", "--store",     "f.db",     "--no-confirm", "--json",
                                     "--quiet",     "--precision", "1000%"};  // a busy machine converges too
    command.insert(command.end(), more.begin(), more.end());
    return ergotune(folder, command);
  };
  const auto before = json_of(tune({}))["statuses"];
  EXPECT_EQ(before, nlohmann::json({{"ok", 1}, {"runtime_error", 2}, {"compile_error", 1}}));
  folder.write("mended", "");
  const auto again = json_of(tune({"--retry", "timeout,runtime_error"}));
  EXPECT_EQ(again["retried"], 2);
  EXPECT_EQ(again["evaluated"], 2);
  EXPECT_EQ(again["resumed"], 2);
  EXPECT_EQ(again["statuses"], nlohmann::json({{"ok", 2}, {"runtime_error", 1}, {"compile_error", 1}}));
  const auto rows = stored_rows(folder.path() / "f.db");
  EXPECT_THAT(rows.at("[\"segfault\"]"), ::testing::ElementsAre("runtime_error", "ok"));
  EXPECT_THAT(rows.at("[\"ended\"]"), ::testing::ElementsAre("runtime_error", "runtime_error"));
  EXPECT_THAT(rows.at("[\"compile_error\"]"), ::testing::ElementsAre("compile_error"));
  // One row counts of each, for a resume and for whoever reads the store.
  EXPECT_EQ(json_of(tune({}))["evaluated"], 0);
  EXPECT_EQ(json_of(ergotune(folder, {"show", "f.db", "--json"}))["statuses"], again["statuses"]);
  EXPECT_EQ(json_of(tune({"--retry", "all"}))["retried"], 2);

  const ProcessResult wrong = tune({"--retry", "timeot"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"timeout\""));
}

}  // namespace
}  // namespace ergotune::test
