// Stores of other versions, databases of others, damaged rows, and who may open what.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "ergotune/error.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/row_scan.hpp"
#include "store/sqlite/store.hpp"
#include "store/written_files.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
};

TEST_F(Schema, AStoreSaysWhoseItIsAndOfWhichVersion) {
  { Store::open(file()); }
  EXPECT_EQ(number("PRAGMA application_id"), 0x4552474f);
  EXPECT_EQ(number("PRAGMA user_version"), 5);
}

TEST_F(Schema, StoresOfUnreleasedVersionsAreRefusedWithTheirVersion) {
  { Store::open(file()); }
  execute("PRAGMA user_version = 2");
  for (const bool read_only : {true, false}) EXPECT_THAT(said(read_only), HasSubstr("schema 2"));
}

TEST_F(Schema, WhatIsNoDatabaseIsSaidByItsFirstBytes) {
  for (const char* text : {"x", "SQLite format 3", "SQLite format 4 and more", "some words of any length"}) {
    write("s.db", text);
    for (const bool read_only : {false, true})
      EXPECT_EQ(said(read_only), file().string() + ": this is not an ergotune store; name another file with --store")
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
  execute("PRAGMA user_version = 6");
  for (const bool read_only : {false, true}) EXPECT_THAT(said(read_only), HasSubstr("schema 5"));
}

TEST_F(Schema, AnyValueComesBackAndTheSameConfigurationIsTheSameText) {
  Store store = Store::open(file());
  const auto session =
      store.session(SessionKey{.problem = "p"}, {"a", "b", "c", "d", "e", "f", "g"}, "time", "{}", "{}");
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
  scan.after(0, 9, [&](const RowSummary& row) {
    texts.push_back(row.configuration);
    for (const RowSummary::Cell& cell : row.cells) metrics[std::string(cell.name)] = cell.value;
  });
  EXPECT_THAT(texts, ElementsAre(R"([{"real":"inf"},{"real":"-inf"},1.0,1,"ä\n",false,-0.5])",
                                 R"([{"real":"nan"},0,0,0,0,0,0])"));
  EXPECT_EQ(metrics.at("high"), INFINITY);
  EXPECT_EQ(metrics.at("low"), -INFINITY);
  EXPECT_TRUE(std::isnan(metrics.at("none")));
  EXPECT_EQ(metrics.at("some"), -1.5);
}

class Scan : public testing::Test {
 protected:
  void SetUp() override {
    Store store = Store::open(file_);
    const auto other = store.session(SessionKey{.problem = "other"}, {"x"}, "time", "{}", "{}");
    store.add(other, {9}, {});
    session_ = store.session(SessionKey{.problem = "p", .device = "d"}, {"x", "y"}, "time", "{}", "{}");
    StoredRow row;
    row.configuration = {1, "a"};
    row.kind = RowKind::confirmed;
    row.run = 7;
    row.stage = "one";
    row.gpu = "GPU-1";
    Measurement& m = row.measurement;
    m.message = "wide";
    m.status = Status::not_converged;
    m.quantities["energy"] = {2, INFINITY, 0, "", "nvml:0", Provenance::measured};
    m.quantities["time"] = {0.5, 0.25, 3, "", "", Provenance::measured};
    m.metrics = {{"gflops", 5}, {"share", NAN}};
    m.metric_errors = {{"gflops", 0.5}};
    m.compile_seconds = 1, m.verify_seconds = 2, m.measure_seconds = 3, m.tuner_seconds = 4, m.finished_at = 1.75e9;
    store.add(session_, row);
    for (int x = 2; x < 6; ++x) store.add(session_, {x, "b"}, {});
  }
  std::vector<std::int64_t> ids(std::int64_t after, std::size_t limit) {
    std::vector<std::int64_t> list;
    RowScan scan(file_, session_);
    const std::size_t count = scan.after(after, limit, [&](const RowSummary& row) { list.push_back(row.id); });
    EXPECT_EQ(count, list.size());
    return list;
  }
  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "s.db";
  std::int64_t session_ = 0;
};

TEST_F(Scan, ALeanRowSaysWhatTheWholeOneSays) {
  RowScan scan(file_, session_);
  int seen = 0;
  scan.after(0, 1, [&](const RowSummary& row) {
    ++seen;
    EXPECT_EQ(row.configuration, R"([1,"a"])");
    EXPECT_EQ(row.status, Status::not_converged);
    EXPECT_EQ(row.kind, RowKind::confirmed);
    EXPECT_EQ(row.message + row.stage + row.gpu, "wideoneGPU-1");
    EXPECT_EQ(row.run, 7);
    EXPECT_EQ(row.finished_at, 1.75e9);
    EXPECT_THAT((std::vector{row.compile_seconds, row.verify_seconds, row.measure_seconds, row.tuner_seconds}),
                ElementsAre(1, 2, 3, 4));
    ASSERT_EQ(row.cells.size(), 4u);
    EXPECT_EQ(row.cells[0].name, "energy");
    EXPECT_TRUE(std::isinf(row.cells[0].standard_error));
    EXPECT_EQ(row.cells[0].n, 1u) << "as often as once at least";
    EXPECT_EQ(row.cells[1].name, "time");
    EXPECT_EQ(row.cells[1].value, 0.5);
    EXPECT_EQ(row.cells[1].standard_error, 0.25f);
    EXPECT_EQ(row.cells[1].n, 3u);
    EXPECT_EQ(row.cells[2].name, "gflops");
    EXPECT_EQ(row.cells[2].standard_error, 0.5f);
    EXPECT_EQ(row.cells[2].n, 1u);
    EXPECT_TRUE(std::isnan(row.cells[3].value));
    EXPECT_EQ(row.cells[3].standard_error, 0) << "of this metric no error is known";
    for (const std::size_t cell : {0, 1, 2, 3}) EXPECT_EQ(row.cells[cell].is_metric, cell > 1);
  });
  EXPECT_EQ(seen, 1);
}

TEST_F(Scan, RowsComeFromARowOnAndNoMoreThanRequested) {
  EXPECT_THAT(ids(0, 100), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(ids(0, 2), ElementsAre(2, 3));
  EXPECT_THAT(ids(3, 2), ElementsAre(4, 5));
  EXPECT_THAT(ids(6, 2), ElementsAre());
  RowScan scan(file_, session_);
  std::vector<std::int64_t> whole;
  for (const StoredRow& row : scan.whole({5, 1, 3})) whole.push_back(row.id);
  EXPECT_THAT(whole, ElementsAre(3, 5)) << "1 is another session's";
  EXPECT_TRUE(scan.whole({}).empty());
}

TEST_F(Scan, DamagedRowsAreMarked) {
  const Database database(file_, false);
  database.execute(
      "UPDATE measurements SET quantities = '{\"time' WHERE id = 3; UPDATE measurements SET status = 'oj' WHERE id = "
      "5");
  RowScan scan(file_, session_);
  std::vector<std::int64_t> damaged;
  scan.after(0, 100, [&](const RowSummary& row) {
    if (row.damaged) damaged.push_back(row.id);
  });
  EXPECT_THAT(damaged, ElementsAre(3, 5));
  EXPECT_EQ(scan.whole({2, 3, 5, 6}).size(), 2u);
}

TEST_F(Scan, WhatIsNoStoreIsRefused) {
  for (const char* text : {"x", "SQLite format 4 and more", "SQLite"}) {
    std::ofstream(folder_.path() / "other.db") << text;
    EXPECT_THROW(RowScan(folder_.path() / "other.db", 1), UserError) << text;
  }
  EXPECT_THROW(RowScan(folder_.path(), 1), UserError);
}

}  // namespace
}  // namespace ergotune
