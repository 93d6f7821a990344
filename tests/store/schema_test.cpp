// Stores of other versions, databases of others, damaged rows, and who may open what.
#include "store/schema.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>

#include "ergotune/store/store.hpp"
#include "store/database.hpp"
#include "store/row_scan.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Schema : public WrittenFiles {
 protected:
  std::filesystem::path file() const { return folder_.path() / "s.db"; }
  std::string said(bool read_only) const {
    return complaint_about([&] { Store::open(file(), read_only); });
  }
  std::int64_t number(const std::string& query) const {
    const Database database(file(), true);
    Statement statement(database, query);
    return statement.step() ? statement.integer(0) : -1;
  }
  void execute(const std::string& sql) const { Database(file(), false).execute(sql); }
  /// A store of an older version, with one session and its one row.
  void former(int version) const {
    {
      Store store = Store::open(file());
      Measurement m;
      m.message = "kept";
      const auto session = store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", "{}", "{}");
      store.add(session, {1}, m);
      store.begin(session, {9});
    }
    if (version < 3) execute("ALTER TABLE running DROP COLUMN under_way; ALTER TABLE running DROP COLUMN deaths");
    execute("ALTER TABLE runs DROP COLUMN probability_best; ALTER TABLE runs DROP COLUMN expected_loss");
    if (version == 1) {
      for (const char* column : {"kind", "run", "stage", "board"})
        execute(fmt::format("ALTER TABLE measurements DROP COLUMN {}", column));
      execute("DROP TABLE runs");
    }
    execute(fmt::format("PRAGMA user_version = {}", version));
  }
};

TEST_F(Schema, AStoreSaysWhoseItIsAndOfWhichVersion) {
  { Store::open(file()); }
  EXPECT_EQ(number("PRAGMA application_id"), 0x4552474f);
  EXPECT_EQ(number("PRAGMA user_version"), 4);
}

TEST_F(Schema, FormerStoresAreReadAsTheyAreAndBroughtUpToDateToBeWritten) {
  for (const int version : {1, 2, 3}) {
    std::filesystem::remove(file());
    former(version);
    {
      const Store store = Store::open(file(), true);
      const auto sessions = store.sessions();
      ASSERT_EQ(sessions.size(), 1u) << version;
      EXPECT_EQ(sessions[0].runs, 0u);
      EXPECT_EQ(sessions[0].rows, 1u);
      EXPECT_EQ(sessions[0].objective.text, "time");
      EXPECT_THAT(store.runs(1), IsEmpty());
      ASSERT_EQ(store.results(1).size(), 1u);
      EXPECT_EQ(store.results(1)[0].measurement.message, "kept");
      EXPECT_EQ(store.results(1)[0].kind, RowKind::search);
      RowScan scan(file(), 1);
      std::string seen;
      scan.after(0, 9, [&](const LeanRow& row) {
        seen += row.message + to_string(row.kind) + std::to_string(row.run) + row.stage + row.board;
      });
      EXPECT_EQ(seen, "keptsearch0") << version;
    }
    EXPECT_EQ(number("PRAGMA user_version"), version) << "it was only read";
    Store store = Store::open(file());
    EXPECT_EQ(number("PRAGMA user_version"), 4);
    EXPECT_THAT(store.unfinished(1), ElementsAre(Configuration{9})) << "it ran when the former session died";
    EXPECT_EQ(store.rows(1)[0].run, 0) << "before runs were kept";
    StoredRow row;
    row.configuration = {2};
    row.kind = RowKind::confirmed;
    row.run = store.begin_run(1, {});
    row.board = "GPU-1";
    store.begin(1, {2});
    EXPECT_THAT(store.note_deaths(1), IsEmpty());
    store.begin(1, {2});
    EXPECT_EQ(store.note_deaths(1).size(), 1u);
    store.add(1, row);
    EXPECT_EQ(store.rows(1).size(), 2u) << version;
    EXPECT_EQ(store.rows(1)[1].board, "GPU-1");
    EXPECT_EQ(store.rows(1)[0].kind, RowKind::search);
    ASSERT_EQ(store.runs(1).size(), 1u);
    EXPECT_FALSE(store.runs(1)[0].certainty);
    store.set_certainty(row.run, {0.9, 0.002});
    ASSERT_TRUE(store.runs(1)[0].certainty);
    EXPECT_EQ(store.runs(1)[0].certainty->probability_best, 0.9);
    EXPECT_EQ(store.runs(1)[0].certainty->expected_loss, 0.002);
    EXPECT_EQ(store.integrity(), "ok");
  }
}

TEST_F(Schema, DatabasesOfOthersAreLeftAlone) {
  const std::string other = ": this is an SQLite database of another program";
  for (const int application : {0, 7}) {
    for (const int version : {0, 1, 3, 5}) {
      for (const int tables : {0, 1, 2}) {
        if (application == 0 && version == 0 && tables == 0) continue;  // nobody's: it becomes a store
        std::filesystem::remove(file());
        execute(fmt::format(
            "PRAGMA application_id = {}; PRAGMA user_version = {}; CREATE TABLE t(x); CREATE TABLE u(x)",
            application, version));
        for (int table = tables; table < 2; ++table) execute(table == 0 ? "DROP TABLE t" : "DROP TABLE u");
        EXPECT_EQ(said(false), file().string() + other + "; name another file with --store")
            << application << version << tables;
        EXPECT_EQ(said(true), file().string() + other);
        EXPECT_EQ(number("SELECT count(*) FROM sqlite_master"), tables);
        EXPECT_EQ(number("PRAGMA application_id"), application);
      }
    }
  }
}

TEST_F(Schema, WhatIsNoDatabaseIsSaidByItsFirstBytes) {
  for (const char* text : {"x", "SQLite format 3", "SQLite format 4 and more", "some words of any length"}) {
    write("s.db", text);
    for (const bool read_only : {false, true})
      EXPECT_EQ(said(read_only),
                file().string() + ": this is not an ergotune store; name another file with --store")
          << text;
  }
  EXPECT_EQ(complaint_about([&] { Store::open(folder_.path()); }),
            folder_.path().string() + ": this is a folder, not a store");
  write("s.db", std::string("SQLite format 3\0", 16) + std::string(200, 'x'));
  for (const bool read_only : {false, true})
    EXPECT_EQ(said(read_only), file().string() + ": this is not an ergotune store");
  const std::string nowhere = (folder_.path() / "none" / "s.db").string();
  EXPECT_THAT(complaint_about([&] { Store::open(nowhere); }),
              testing::StartsWith(nowhere + ": cannot open the store ("));
  std::filesystem::remove(file());
  EXPECT_EQ(said(true), file().string() + ": there is no store here; \"ergotune tune\" makes one");
  { Store::open(file()); }
  execute("PRAGMA user_version = 5");
  for (const bool read_only : {false, true})
    EXPECT_EQ(
        said(read_only),
        file().string() + ": this store has schema 5, and this ergotune knows up to 4: use a newer ergotune");
}

TEST_F(Schema, AFileThatIsOnlyToBeReadIsReadWhereverItLies) {
  using std::filesystem::perms;
  const uid_t user = ::geteuid(), nobody = 65534;
  for (const perms folder : {perms(0555), perms(0777)}) {
    for (const perms mode : {perms(0444), perms(0666)}) {
      std::filesystem::permissions(folder_.path(), perms(0777));
      std::filesystem::remove(file());
      {
        Store store = Store::open(file());
        store.add(store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", "{}", "{}"), {1}, {});
      }
      std::filesystem::permissions(file(), mode);
      std::filesystem::permissions(folder_.path(), folder);
      if (user == 0) {
        ASSERT_EQ(::seteuid(nobody), 0);  // root may write everywhere
      }
      EXPECT_EQ(Store::open(file(), true).rows(1).size(), 1u)
          << static_cast<int>(folder) << " " << static_cast<int>(mode);
      if (user == 0) {
        ASSERT_EQ(::seteuid(user), 0);
      }
    }
  }
  std::filesystem::permissions(folder_.path(), perms(0755));
}

TEST_F(Schema, WhatFailedHalfWayIsTakenBackAndTheStoreGoesOn) {
  Store store = Store::open(file());
  const auto session = store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", "{}", "{}");
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_THROW(store.add_all(session + 1, {{0, {1}, {}}}), Error);
    EXPECT_THROW(store.begin(session + 1, {1}), Error);
  }
  store.add(session, {1}, {});
  store.add_all(session, {{0, {2}, {}}, {0, {3}, {}}});
  EXPECT_EQ(store.rows(session).size(), 3u);
}

TEST_F(Schema, ANoteFindsItsPlaceInAnyEnvironment) {
  Store store = Store::open(file());
  for (const char* environment : {"", "nonsense", "[1]", "7", "{}", R"({"n": 0})"}) {
    const auto session = store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", environment, "{}");
    store.note(session, "n", R"({"of": "ä"})");
    EXPECT_EQ(store.environment(session), R"({"n":{"of":"ä"}})") << environment;
  }
  EXPECT_EQ(store.environment(99), "");
}

TEST_F(Schema, AnyValueComesBackAndTheSameConfigurationIsTheSameText) {
  Store store = Store::open(file());
  const auto session = store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", "{}", "{}");
  const Configuration odd{INFINITY, -INFINITY, 1.0, 1, "ä\n", false, -0.5};
  Measurement m;
  m.metrics = {{"high", INFINITY}, {"low", -INFINITY}, {"none", NAN}, {"some", -1.5}};
  m.times = {INFINITY, -INFINITY, 2};
  store.add(session, odd, m);
  store.add(session, {NAN}, {});
  const auto rows = store.rows(session);
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(rows[0].configuration[i].data(), odd[i].data()) << i;
  EXPECT_TRUE(std::isnan(rows[1].configuration[0].as_real()));
  EXPECT_EQ(rows[0].measurement.metrics.at("high"), INFINITY);
  EXPECT_EQ(rows[0].measurement.metrics.at("low"), -INFINITY);
  EXPECT_TRUE(std::isnan(rows[0].measurement.metrics.at("none")));
  EXPECT_THAT(rows[0].measurement.times, ElementsAre(INFINITY, -INFINITY, 2));
  RowScan scan(file(), session);
  std::vector<std::string> texts;
  std::map<std::string, double> metrics;
  scan.after(0, 9, [&](const LeanRow& row) {
    texts.push_back(row.configuration);
    for (const LeanRow::Cell& cell : row.cells) metrics[std::string(cell.name)] = cell.value;
  });
  EXPECT_THAT(texts, ElementsAre(R"([{"real":"inf"},{"real":"-inf"},1.0,1,"ä\n",false,-0.5])",
                                 R"([{"real":"nan"}])"));
  EXPECT_EQ(metrics.at("high"), INFINITY);
  EXPECT_EQ(metrics.at("low"), -INFINITY);
  EXPECT_TRUE(std::isnan(metrics.at("none")));
  EXPECT_EQ(metrics.at("some"), -1.5);
}

TEST_F(Schema, ALeanRowTakesFromADamagedOneWhatItHas) {
  {
    Store store = Store::open(file());
    store.add(store.session(SessionIdentity{.problem = "p"}, {"x"}, "time", "{}", "{}"), {1}, {});
  }
  const auto cells = [&](const std::string& column, const std::string& text) {
    {
      const Database database(file(), false);
      Statement(
          database,
          "UPDATE measurements SET quantities = '{}', metrics = '{}', metric_errors = '{}', status = 'odd'")
          .run();
      Statement(database, fmt::format("UPDATE measurements SET {} = ?", column)).bind(1, text).run();
    }
    RowScan scan(file(), 1);
    std::string seen;
    scan.after(0, 9, [&](const LeanRow& row) {
      EXPECT_EQ(row.status, Status::runtime_error) << "no status that is known";
      for (const auto& cell : row.cells)
        seen += fmt::format("{} {} {} {};", cell.name, cell.value, cell.standard_error, cell.n);
    });
    return seen;
  };
  EXPECT_EQ(
      cells(
          "quantities",
          R"({"a": {"value": 2}, "b": {"n": 3}, "c": {"value": 4, "standard_error": 0.5, "n": -1}, "d": {"value": "x", "n": 7}})"),
      "a 2 0 1;c 4 0.5 1;d nan 0 7;");
  EXPECT_EQ(cells("metrics", R"({"a": 2, "b": [1], "c": 3})"), "a 2 0 1;b nan 0 1;c 3 0 1;");
  EXPECT_EQ(cells("metric_errors", R"({"a": 2})"), "");
  for (const char* column : {"quantities", "metrics", "metric_errors"})
    for (const char* text : {"", "[1]", "{", "7"}) EXPECT_EQ(cells(column, text), "") << column << text;
}

TEST_F(Schema, ALockSaysWhoHoldsItWhereThatIsKnown) {
  const auto lock = write("s.db-session4.lock", "");
  const auto held = [&](const std::string& by) {
    return file().string() + ": session 4 is being tuned by " + by +
           "; wait until it has ended (then this command goes on from its results), or give this run a store "
           "of its own with --store";
  };
  FILE* holder = std::fopen(lock.c_str(), "w");
  ASSERT_NE(holder, nullptr);
  ASSERT_EQ(::flock(::fileno(holder), LOCK_EX), 0);
  const auto said = [&] { return complaint_about([&] { SessionLock(file(), 4); }); };
  EXPECT_EQ(said(), held("another process"));
  std::fputs("1\n", holder);
  std::fflush(holder);
  EXPECT_EQ(said(), held("process 1"));
  std::fclose(holder);
  EXPECT_EQ(said(), "none");
  EXPECT_THAT(complaint_about([&] { SessionLock(folder_.path() / "none" / "s.db", 4); }),
              HasSubstr("s.db-session4.lock: cannot make the lock of a session: "));
}

}  // namespace
}  // namespace ergotune
