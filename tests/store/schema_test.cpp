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
    execute("ALTER TABLE running DROP COLUMN under_way; ALTER TABLE running DROP COLUMN deaths");
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
  EXPECT_EQ(number("PRAGMA user_version"), 3);
}

TEST_F(Schema, FormerStoresAreReadAsTheyAreAndBroughtUpToDateToBeWritten) {
  for (const int version : {1, 2}) {
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
    EXPECT_EQ(number("PRAGMA user_version"), 3);
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
    EXPECT_EQ(store.runs(1).size(), 1u);
    EXPECT_EQ(store.integrity(), "ok");
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
  execute("PRAGMA user_version = 4");
  for (const bool read_only : {false, true})
    EXPECT_EQ(
        said(read_only),
        file().string() + ": this store has schema 4, and this ergotune knows up to 3: use a newer ergotune");
}

TEST_F(Schema, AnyValueComesBackAndTheSameConfigurationIsTheSameText) {
  Store store = Store::open(file());
  const auto session = store.session(SessionIdentity{.problem = "p"}, {"a", "b", "c", "d", "e", "f", "g"}, "time", "{}", "{}");
  const Configuration odd{INFINITY, -INFINITY, 1.0, 1, "ä\n", false, -0.5};
  Measurement m;
  m.metrics = {{"high", INFINITY}, {"low", -INFINITY}, {"none", NAN}, {"some", -1.5}};
  m.times = {INFINITY, -INFINITY, 2};
  store.add(session, odd, m);
  store.add(session, {NAN, 0, 0, 0, 0, 0, 0}, {});
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
                                 R"([{"real":"nan"},0,0,0,0,0,0])"));
  EXPECT_EQ(metrics.at("high"), INFINITY);
  EXPECT_EQ(metrics.at("low"), -INFINITY);
  EXPECT_TRUE(std::isnan(metrics.at("none")));
  EXPECT_EQ(metrics.at("some"), -1.5);
}

}  // namespace
}  // namespace ergotune
