// Rows as they come, for those who watch a session: lean, from a row on, each once.
#include "store/sqlite/row_scan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ergotune/error.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;

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
