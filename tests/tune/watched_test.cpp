// What a session shows to those who watch, and what it does when they ask.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "temporary_folder.hpp"
#include "tune/fake_evaluator.hpp"
#include "tune/ledger/live_session.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

SearchSpace make_space() {
  std::vector<Parameter> parameters(1);
  parameters[0].name = "x";
  for (int i = 1; i <= 40; ++i) parameters[0].values.emplace_back(i);
  return SearchSpace::build(parameters, {});
}

class WatchedTest : public ::testing::Test {
 protected:
  WatchedTest() : space(make_space()), objective(Objective::parse({}, {})) {
    evaluator.measure = [](const Configuration& c, int) { return test::timed(1e-3 * c[0].as_real(), 1e-6); };
    store = std::make_unique<Store>(Store::open(folder / "s.db"));
    session = store->session(SessionKey{.problem = "p"}, {"x"}, "time", "{}", "{}");
    live = std::make_shared<LiveSession>(folder / "s.db");
    reader = LiveFile::open(live_path());
    options.strategy = "random";
  }
  SessionResult run() {
    LedgerOptions kept;
    kept.store = store.get();
    kept.session = session;
    kept.live = live;
    Ledger ledger(space, evaluator, kept);
    RunInfo info;
    info.phase = "searching";
    ledger.begin_run(info);
    SessionResult result = run_session(ledger, space, objective, options);
    ledger.end_run(result.stopped_because);
    return result;
  }
  nlohmann::json shown() const { return nlohmann::json::parse(reader->state()); }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  SearchSpace space;
  Objective objective;
  test::FakeEvaluator evaluator;
  SessionOptions options;
  std::unique_ptr<Store> store;
  std::int64_t session = 0;
  std::shared_ptr<LiveSession> live;
  std::unique_ptr<LiveFile> reader;
};

TEST_F(WatchedTest, ShowsHowFarItIs) {
  ASSERT_NE(reader, nullptr);
  live->describe(session, true, {"a note"});
  EXPECT_EQ(shown()["session"], session);
  EXPECT_EQ(shown()["on_cpu"], true);
  EXPECT_EQ(shown()["notes"][0], "a note");
  nlohmann::json last;
  evaluator.before_result = [&](std::size_t) {
    ::usleep(30'000);
    last = shown();
  };
  options.budget.evaluations = 12;
  run();
  EXPECT_EQ(last["state"], "running");
  EXPECT_GT(last["evaluated"], 0);
  EXPECT_EQ(last["progress"]["total"], 12);
  EXPECT_GT(last["progress"]["rate"], 0);
  EXPECT_TRUE(last["progress"]["best"].is_number());
}

TEST_F(WatchedTest, AStopEndsItWithTheBestSoFar) {
  evaluator.before_result = [&](std::size_t results) {
    if (results == 6) reader->ask(kStopAfterCurrent);
  };
  const SessionResult result = run();
  EXPECT_FALSE(result.stopped_because.empty());
  EXPECT_EQ(evaluator.results, 7u) << "the current one ends, and nothing is confirmed";
  EXPECT_EQ(result.confirmation_repeats, 0);
  EXPECT_EQ(store->rows(session).size(), 7u);
  EXPECT_TRUE(store->unfinished(session).empty());
}

TEST_F(WatchedTest, ConfirmNowEndsTheSearchAndConfirms) {
  evaluator.before_result = [&](std::size_t results) {
    if (results == 6) reader->ask(kConfirmNow);
  };
  const SessionResult result = run();
  EXPECT_LT(result.evaluated, 10u);
  EXPECT_GE(result.confirmation_repeats, 3);
  EXPECT_EQ(reader->requested(), 0u) << "done once";
}

TEST_F(WatchedTest, APauseHandsNothingOutAndCountsForNoBudget) {
  options.confirm = false;
  options.budget.seconds = 1;
  std::atomic<std::size_t> measured{0};
  evaluator.before_result = [&](std::size_t results) {
    ++measured;
    if (results == 3) reader->ask(kPause);
  };
  live->describe(session, false, {});
  std::thread other([&] {
    while (shown()["state"] != "paused") ::usleep(1000);
    const std::size_t before = measured;
    ::usleep(1'300'000);
    EXPECT_EQ(measured, before);
    reader->take_back(kPause);
  });
  const SessionResult result = run();
  other.join();
  EXPECT_EQ(result.evaluated, 40u) << "its second was not spent by the pause: " << result.stopped_because;
}

TEST_F(WatchedTest, WhatKilledSessionsLeftIsRemoved) {
  namespace fs = std::filesystem;
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  for (const char* name : {"s.db-live-1-1", "s.db-live-1-2", "s.db-live-1-3", "other.db-live-1-1"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto kept = LiveFile::create(folder / name);
      ::_exit(kept ? 0 : 1);  // as one that was killed
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ASSERT_TRUE(fs::exists(folder / name));
    if (std::string(name) == "s.db-live-1-1") continue;
    std::fstream file(folder / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * sizeof(std::uint64_t));  // behind a magic number and the process id: the machine
    file.write("another!", 8);
    file.close();
    if (std::string(name) != "s.db-live-1-2")
      fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const LiveSession session(folder / "s.db");
  EXPECT_FALSE(fs::exists(folder / "s.db-live-1-1")) << "its process has ended here";
  EXPECT_FALSE(fs::exists(folder / "s.db-live-1-3")) << "it is old";
  EXPECT_TRUE(fs::exists(folder / "s.db-live-1-2")) << "it may be another machine's";
  EXPECT_TRUE(fs::exists(folder / "other.db-live-1-1")) << "another store's";
}

TEST_F(WatchedTest, WhereNothingCanBeShownItGoesOn) {
  live = std::make_shared<LiveSession>("/no/such/folder/s.db");
  options.budget.evaluations = 5;
  EXPECT_EQ(run().evaluated, 5u);
}

}  // namespace
}  // namespace ergotune
