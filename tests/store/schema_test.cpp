// Stores of other versions, databases of others, damaged rows, and who may open what.
#include "store/sqlite/database.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>

#include "store/sqlite/row_scan.hpp"
#include "store/sqlite/store.hpp"
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

}  // namespace
}  // namespace ergotune
