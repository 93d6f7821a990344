#include "watch/site.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "measure/energy/power_trace.hpp"
#include "report/report.hpp"
#include "store/sqlite/database.hpp"
#include "temporary_folder.hpp"

namespace ergotune::serve {
namespace {

using Json = nlohmann::json;

Measurement timed(double seconds, Status status = Status::ok) {
  Measurement m;
  m.status = status;
  if (usable(status)) m.quantities["time"].value = seconds;
  if (!usable(status)) m.message = "error: no";
  m.finished_at = 1e9;
  return m;
}

class SiteTest : public ::testing::Test {
 protected:
  SiteTest() {
    store = std::make_unique<Store>(Store::open(folder / "s.db"));
    session = store->session(SessionKey{.problem = "p", .device = "d"}, {"x"}, "time", "{}", "{}");
    run = store->begin_run(session, {.objective = {"time", Direction::minimise, {}}});
  }
  void add(int x, double seconds, RowKind kind = RowKind::search, Status status = Status::ok) {
    StoredRow row;
    row.configuration = {x};
    row.measurement = timed(seconds, status);
    row.kind = kind;
    row.run = run;
    store->add(session, row);
  }
  static Json ask(Site& site, const std::string& target) {
    const Route route = route_of({.method = "GET", .target = target});
    for (int i = 0; i < 3000; ++i) {
      if (const auto answer = site.answer(route)) return Json::parse(answer->body);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return "no answer";
  }
  /// What the view says, and what the saved page of the same store says, must be one thing.
  void expect_as_saved(Site& site) {
    const Json saved = Json::parse(saved_data(folder / "s.db", 0, std::nullopt));
    const Json head = ask(site, "/api/session/1")["document"];
    for (const char* name : {"best", "statuses", "convergence", "top", "failures", "gains", "median"})
      EXPECT_EQ(head[name], saved["document"][name]) << name;
    const Json results = ask(site, "/api/session/1/results")["results"];
    EXPECT_EQ(results["columns"], saved["results"]["columns"]);
    EXPECT_EQ(results["confirmed"], saved["results"]["confirmed"]);
    EXPECT_EQ(results["status"], saved["results"]["status"]);
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  std::unique_ptr<Store> store;
  std::int64_t session = 0, run = 0;
};

TEST_F(SiteTest, AnObjectiveThatMeansNothingIsABadRequest) {
  Site site(folder / "s.db");
  add(1, 0.4);
  for (const char* target : {"/api/session/1?objective=bogus", "/api/session/1?objective=time%2B%2B",
                             "/api/session/1/findings?objective=bogus"}) {
    const auto answer = site.answer(route_of({.method = "GET", .target = target}));
    ASSERT_TRUE(answer) << target;
    EXPECT_EQ(answer->status, 400) << target;
  }
}

TEST_F(SiteTest, AStoreThatIsDeletedIsGoneAndANewOneInItsPlaceIsSeen) {
  Site site(folder / "s.db");
  add(1, 0.4);
  store->flush();
  EXPECT_EQ(ask(site, "/api/session/1/results")["last"], 1);
  store.reset();
  for (const char* name : {"s.db", "s.db-wal", "s.db-shm"}) std::filesystem::remove(folder / name);
  EXPECT_EQ(site.view("1"), nullptr);
  EXPECT_TRUE(ask(site, "/api/session/1").contains("error"));
  store = std::make_unique<Store>(Store::open(folder / "s.db"));
  session = store->session(SessionKey{.problem = "another", .device = "d"}, {"x"}, "time", "{}", "{}");
  EXPECT_EQ(ask(site, "/api/sessions")["sessions"][0]["problem"], "another");
  EXPECT_EQ(ask(site, "/api/session/1/results")["last"], 0) << "of the new one, not of the file that was";
}

TEST_F(SiteTest, AStoreThatASessionIsJustCreatingIsWaitedForAndNoOtherDatabaseIs) {
  const std::filesystem::path file = folder / "coming.db";
  Database(file, false).execute("PRAGMA user_version = 0");  // what is there before the tables
  const Site waiting(file, 0, true);
  EXPECT_THROW(Site(file, 0, false), UserError);
  Database(file, false).execute("CREATE TABLE of_another_program (x)");
  EXPECT_THROW(Site(file, 0, true), UserError);
}

TEST_F(SiteTest, RowsThatComeWhileItWatchesAreWhatAReportWouldTell) {
  Site site(folder / "s.db");
  add(1, 0.4);
  add(2, 0, RowKind::search, Status::compile_error);
  expect_as_saved(site);
  add(3, 0.2);
  add(4, 0.3);
  add(2, 0.5);  // a failure that was tried again
  expect_as_saved(site);
  for (int round = 0; round < 3; ++round) add(3, 0.25, RowKind::confirmation), add(4, 0.24, RowKind::confirmation);
  expect_as_saved(site);
  add(3, 0.25, RowKind::confirmed);
  add(4, 0.24, RowKind::confirmed);
  store->set_confirmed(run, 3);
  expect_as_saved(site);
  EXPECT_EQ(ask(site, "/api/session/1")["document"]["best"]["objective"], 0.24);
  add(4, 0.1);  // searched anew: what was confirmed no longer counts, and the first of two that are ok does
  expect_as_saved(site);
}

TEST_F(SiteTest, WhoComesBackGetsWhatChangedSince) {
  Site site(folder / "s.db");
  for (int x = 0; x < 10; ++x) add(x, 0.1 + 0.01 * x);
  const Json first = ask(site, "/api/session/1/results?after=0&limit=6");
  EXPECT_EQ(first["last"], 6);
  EXPECT_EQ(first["more"], true);
  add(2, 0.11, RowKind::confirmed);
  const Json rest = ask(site, "/api/session/1/results?after=6");
  EXPECT_EQ(rest["results"]["rows"], Json({2, 6, 7, 8, 9})) << "a row that changed comes again";
  EXPECT_EQ(rest["results"]["confirmed"], Json({1, 0, 0, 0, 0}));
  EXPECT_EQ(rest["last"], 11);
  EXPECT_EQ(ask(site, "/api/session/1/results?after=11")["results"]["rows"], Json::array());
}

TEST_F(SiteTest, AConfigurationIsReportedWithAllItsMeasurements) {
  Site site(folder / "s.db");
  add(7, 0.5);
  add(7, 0.4, RowKind::confirmation);
  add(7, 0.4, RowKind::confirmed);
  const Json all = ask(site, "/api/session/1/configuration/0");
  EXPECT_EQ(all["configuration"], Json({{"x", 7}}));
  EXPECT_EQ(all["quantities"]["time"]["value"], 0.4);
  ASSERT_EQ(all["measurements"].size(), 3u);
  EXPECT_EQ(all["measurements"][1]["kind"], "confirmation");
  EXPECT_TRUE(ask(site, "/api/session/1/configuration/1").contains("error"));
}

TEST_F(SiteTest, MacrosTraceAndCommandBelongToAConfiguration) {
  Problem problem;
  problem.name = "q";
  problem.file = "/some where/q.toml";
  problem.kernels.resize(1);
  problem.parameters.resize(2);
  problem.parameters[0].name = "x";
  problem.parameters[0].values = {Value(7), Value(8)};
  problem.parameters[1].name = "core_clock_mhz";
  problem.parameters[1].kind = ParameterKind::core_clock_mhz;
  problem.parameters[1].values = {Value(900), Value(1200)};
  problem.observers.push_back({.name = "trace", .options = {{"folder", {Value("powers")}}}});
  const auto id = store->session(SessionKey{.problem = "q", .device = "GPU (cuda:0)"}, {"x", "core_clock_mhz"}, "time",
                                 "{}", serialise(problem));
  store->add(id, {7, 1200}, timed(0.5));
  PowerTrace trace;
  trace.power.push_back({"sensor", {0, 1}, {40, 50}});
  std::filesystem::create_directories(folder / "powers");
  ASSERT_EQ(write_file(folder / "powers/x=7,1200.csv", to_csv(trace)), 0);
  Site site(folder / "s.db");
  const Json all = ask(site, "/api/session/2/configuration/0");
  EXPECT_EQ(all["macros"][0]["macros"], Json({{"x", 7}})) << "a clock is no macro";
  EXPECT_EQ(all["trace"]["power"][0]["value"], Json({40, 50}));
  EXPECT_EQ(all["command"],
            "ergotune measure '/some where/q.toml' --device cuda:0 --config '{\"x\":7,\"core_clock_mhz\":1200}'");
}

TEST_F(SiteTest, AFolderShowsItsStores) {
  add(1, 0.5);
  {
    Store other = Store::open(folder / "t.db");
    const auto id = other.session(SessionKey{.problem = "q"}, {"x"}, "time", "{}", "{}");
    other.add(id, {1}, timed(0.25));
    other.add(id, {2}, timed(0.75));
  }
  add(2, 0.6);
  Site site(folder);
  const Json list = ask(site, "/api/sessions");
  ASSERT_EQ(list["sessions"].size(), 2u);
  EXPECT_EQ(list["sessions"][0]["id"], "s.db:1");
  EXPECT_EQ(list["sessions"][1]["rows"], 2);
  const Json both = ask(site, "/api/compare?session=s.db:1&session=t.db:1");
  EXPECT_EQ(both["pairs"][0]["common"], 2);
  EXPECT_EQ(both["sessions"][1]["best"]["value"], 0.25);
  EXPECT_TRUE(ask(site, "/api/session/u.db:1").contains("error"));
  EXPECT_TRUE(ask(site, "/api/session/..%2Fs.db:1").contains("error"));
  EXPECT_THROW(Site(folder / "none"), UserError);
  std::filesystem::create_directories(folder / "empty");
  EXPECT_THROW(Site(folder / "empty"), UserError);
}

TEST_F(SiteTest, OneBadStoreOfAFolderHidesNoOther) {
  add(1, 0.5);
  std::string damaged(4096, 'x');
  ASSERT_EQ(write_file(folder / "bad.db", damaged.replace(0, 16, std::string("SQLite format 3\0", 16))), 0);
  Site site(folder);
  const Json list = ask(site, "/api/sessions");
  EXPECT_EQ(list["first"], "s.db:1");
  ASSERT_EQ(list["sessions"].size(), 2u) << list;
  EXPECT_TRUE(list["sessions"][0].contains("error"));
}

// Views are let go of when there are too many; a comparison then read the first session's anew, and without its rows.
TEST_F(SiteTest, ComparedSessionsHaveTheirRows) {
  for (int i = 0; i < 64; ++i) {
    const auto id =
        store->session(SessionKey{.problem = "p", .device = "d" + std::to_string(i)}, {"x"}, "time", "{}", "{}");
    store->add(id, {1}, timed(0.25));
    store->add(id, {2}, timed(0.5));
  }
  add(1, 0.5);
  Site site(folder / "s.db");
  for (int i = 2; i <= 65; ++i) ASSERT_NE(site.view(std::to_string(i)), nullptr);
  EXPECT_EQ(site.views().size(), 64u);
  const Json both = ask(site, "/api/compare?session=2&session=1");
  EXPECT_EQ(both["sessions"][0]["usable"], 2) << both;
}

TEST_F(SiteTest, WhatASessionShowsIsSeenAndWhatIsRequestedReachesIt) {
  add(1, 0.5);
  Site site(folder / "s.db");
  SessionView* view = site.view("1");
  ASSERT_NE(view, nullptr);
  EXPECT_FALSE(view->ask("stop"));
  const auto live = LiveFile::create(folder / "s.db-live-1-1");
  ASSERT_NE(live, nullptr);
  live->set_state(R"({"session": 2})");
  EXPECT_FALSE(view->ask("stop")) << "another session's";
  live->set_state(R"({"session": 1, "on_cpu": true, "state": "running"})");
  EXPECT_TRUE(view->ask("pause"));
  EXPECT_EQ(live->requested(), kPause);
  EXPECT_TRUE(view->ask("resume"));
  EXPECT_TRUE(view->ask("confirm"));
  EXPECT_EQ(live->requested(), kConfirmNow);
  EXPECT_EQ(Json::parse(view->state())["live"]["state"], "running");
  EXPECT_FALSE(site.quiet());
  LiveSample sample;
  sample.time = 1e12;  // the clock of a test
  sample.power_w = 42;
  sample.window = 1;
  live->add(sample);
  EXPECT_TRUE(site.quiet()) << "a CPU's energy is being measured";
  std::uint64_t next = 0;
  EXPECT_EQ(Json::parse(view->samples(next))["power_w"], Json({42}));
  EXPECT_EQ(view->samples(next), "") << "each once";
  sample.window = 2;
  live->add(sample);
  EXPECT_FALSE(site.quiet());
  store->end_run(run, "finished");
  view->update(100);
  EXPECT_TRUE(Json::parse(view->state())["live"].is_null());
}

}  // namespace
}  // namespace ergotune::serve
