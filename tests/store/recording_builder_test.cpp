// Recordings as they are built: values found by what they are, columns as they turn up, blocks joined.
#include "store/recording_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "store/distinct_values.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ValueIndex, FindsEachOfAShortOrLongListAndNothingElse) {
  for (const std::int64_t count : {0, 1, 2, 63, 64, 65, 200}) {
    std::vector<Value> values;
    for (std::int64_t i = 0; i < count; ++i) values.emplace_back(3 * i);
    ValueIndex index(values);
    for (const std::int64_t step : {1, 7}) {  // in order, and jumping about
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = i * step % count;
        EXPECT_EQ(index.find(3 * at), at) << count;
        EXPECT_EQ(index.find(Value(3 * at)), at) << count;
      }
    }
    for (const std::int64_t other : {std::int64_t(-3), std::int64_t(1), 3 * count}) {
      EXPECT_EQ(index.find(other), ValueIndex::npos) << count;
      EXPECT_EQ(index.find(Value(other)), ValueIndex::npos) << count;
    }
  }
}

TEST(ValueIndex, IntegersAreFoundAmongOtherValues) {
  ValueIndex index({Value("a"), Value(5), Value(true), Value(0.5)});
  EXPECT_EQ(index.find(std::int64_t(5)), 1u);
  EXPECT_EQ(index.find(Value("a")), 0u);
  EXPECT_EQ(index.find(Value(0.5)), 3u);
  EXPECT_EQ(index.find(std::int64_t(7)), ValueIndex::npos);
  EXPECT_EQ(ValueIndex().find(std::int64_t(0)), ValueIndex::npos);
}

Recording finished(RecordingBuilder& rows, std::size_t parameters = 1) {
  Recording recording;
  recording.parameters.resize(parameters);
  rows.finish(recording);
  return recording;
}

const std::uint32_t kFirst[] = {0};

TEST(RecordingBuilder, AColumnThatTurnsUpLateIsEmptyBefore) {
  RecordingBuilder rows(1);
  rows.set(rows.column("time", false), 1, 0.5, 3);
  rows.finish_row(kFirst, Status::ok, {});
  EXPECT_EQ(rows.rows(), 1u);
  const std::size_t late = rows.column("late", true);
  EXPECT_EQ(rows.column("late", true), late);
  EXPECT_NE(rows.column("time", false), late);
  rows.set(late, 2, 0.25, 4);
  rows.finish_row(kFirst, Status::timeout, {});
  rows.column("never", true);
  const Recording r = finished(rows);
  ASSERT_EQ(r.columns.size(), 2u) << "columns with nothing in them are dropped";
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::timeout));
  EXPECT_EQ(r.columns[0].value[0], 1);
  EXPECT_TRUE(std::isnan(r.columns[0].value[1]));
  EXPECT_THAT(r.columns[0].standard_error, ElementsAre(0.5f, 0));
  EXPECT_THAT(r.columns[0].n, ElementsAre(3, 1));
  EXPECT_TRUE(std::isnan(r.columns[1].value[0]));
  EXPECT_EQ(r.columns[1].value[1], 2);
  EXPECT_THAT(r.columns[1].standard_error, ElementsAre(0, 0.25f));
  EXPECT_THAT(r.columns[1].n, ElementsAre(1, 4));
  EXPECT_FALSE(r.columns[0].is_metric);
  EXPECT_TRUE(r.columns[1].is_metric);
  EXPECT_THAT(r.compile_seconds, IsEmpty()) << "no row said what it cost";
}

TEST(RecordingBuilder, ErrorsAndNumbersAreKeptWhereThereAreSome) {
  RecordingBuilder rows(1);
  rows.set(rows.column("plain", false), 1);
  rows.set(rows.column("once", false), 2, 0, 1);
  rows.set(rows.column("often", false), 3, 0, 2);
  rows.set(rows.column("wide", false), 4, 0.5, 1);
  rows.finish_row(kFirst, Status::ok, {});
  const Recording r = finished(rows);
  for (const char* name : {"plain", "once"}) {
    EXPECT_THAT(r.column(name)->n, IsEmpty()) << name;
    EXPECT_THAT(r.column(name)->standard_error, IsEmpty()) << name;
  }
  EXPECT_THAT(r.column("often")->n, ElementsAre(2));
  EXPECT_THAT(r.column("often")->standard_error, IsEmpty());
  EXPECT_THAT(r.column("wide")->n, IsEmpty());
  EXPECT_THAT(r.column("wide")->standard_error, ElementsAre(0.5f));
}

TEST(RecordingBuilder, AValueBesideItsReadingsKeepsTheirErrorAndNumber) {
  for (const bool value_first : {false, true}) {
    RecordingBuilder rows(1);
    const std::size_t time = rows.column("time", false);
    if (value_first) rows.set(time, 7);
    rows.set_statistics(time, 6, 0.5, 3);
    if (!value_first) rows.set(time, 7);
    rows.finish_row(kFirst, Status::ok, {});
    rows.set_statistics(time, 5, 0.25, 2);
    rows.finish_row(kFirst, Status::ok, {});
    const Recording r = finished(rows);
    EXPECT_THAT(r.columns[0].value, ElementsAre(7, 5)) << "the mean stands only where no value does";
    EXPECT_THAT(r.columns[0].standard_error, ElementsAre(0.5f, 0.25f));
    EXPECT_THAT(r.columns[0].n, ElementsAre(3, 2));
  }
}

TEST(RecordingBuilder, WhatIsDroppedIsInNoRow) {
  RecordingBuilder rows(1);
  const std::size_t time = rows.column("time", false), other = rows.column("other", false);
  rows.set(time, 1, 2, 3);
  rows.set_statistics(other, 4, 5, 6);
  rows.drop_row();
  rows.finish_row(kFirst, Status::ok, {});
  rows.set(time, 8);
  rows.set(other, 9);
  rows.finish_row(kFirst, Status::ok, {});
  const Recording r = finished(rows);
  for (const auto& [name, value] : {std::pair{"time", 8.0}, {"other", 9.0}}) {
    EXPECT_TRUE(std::isnan(r.column(name)->value[0])) << name;
    EXPECT_EQ(r.column(name)->value[1], value);
    EXPECT_THAT(r.column(name)->standard_error, IsEmpty()) << name;
    EXPECT_THAT(r.column(name)->n, IsEmpty()) << name;
  }
}

TEST(RecordingBuilder, JoinedBlocksAreOneRecording) {
  RecordingBuilder rows(2), more(2);
  const std::uint32_t positions[] = {1, 2, 3, 4};
  rows.set(rows.column("time", false), 1, 0.5, 3);
  rows.finish_row(positions, Status::ok, {});
  more.set(more.column("late", true), 2, 0.25, 4);
  more.finish_row(positions + 2, Status::timeout, {1, 2, 3, 4, true});
  rows.append(more);
  EXPECT_EQ(more.rows(), 0u);
  const std::size_t time = rows.column("time", false);
  rows.set(time, 5);
  rows.finish_row(positions + 1, Status::ok, {});
  const Recording r = finished(rows, 2);
  EXPECT_THAT(r.positions, ElementsAre(1, 2, 3, 4, 2, 3));
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::timeout, Status::ok));
  EXPECT_THAT(r.column("time")->value, ElementsAre(1, testing::IsNan(), 5));
  EXPECT_THAT(r.column("time")->standard_error, ElementsAre(0.5f, 0, 0));
  EXPECT_THAT(r.column("time")->n, ElementsAre(3, 1, 1));
  EXPECT_THAT(r.column("late")->value, ElementsAre(testing::IsNan(), 2, testing::IsNan()));
  EXPECT_THAT(r.column("late")->standard_error, ElementsAre(0, 0.25f, 0));
  EXPECT_THAT(r.column("late")->n, ElementsAre(1, 4, 1));
  EXPECT_THAT(r.compile_seconds, ElementsAre(0, 1, 0)) << "one that says what it cost is enough";
  EXPECT_THAT(r.verify_seconds, ElementsAre(0, 2, 0));
  EXPECT_THAT(r.run_seconds, ElementsAre(0, 3, 0));
  EXPECT_THAT(r.framework_seconds, ElementsAre(0, 4, 0));
}

TEST(RecordingBuilder, CostsOfEarlierRowsAreKeptWhereLaterOnesHaveNone) {
  RecordingBuilder rows(1), more(1);
  rows.finish_row(kFirst, Status::ok, {1, 2, 3, 4, true});
  rows.finish_row(kFirst, Status::ok, {});
  more.finish_row(kFirst, Status::ok, {});
  rows.append(more);
  EXPECT_THAT(finished(rows).run_seconds, ElementsAre(3, 0, 0));
}

TEST(RecordingBuilder, PositionsBehindTheKnownValuesBecomeThoseOfTheCommonList) {
  RecordingBuilder rows(2);
  const std::uint32_t positions[] = {1, 2, 0, 3};
  rows.finish_row(positions, Status::ok, {});
  rows.finish_row(positions + 2, Status::ok, {});
  std::vector<Parameter> parameters(2);
  parameters[0].values = {1, 2};
  parameters[1].values = {1, 2};
  rows.map_positions({{}, {5, 7}}, parameters);
  EXPECT_THAT(finished(rows, 2).positions, ElementsAre(1, 5, 0, 7));
}

TEST(DistinctValues, NewOnesAreSortedBehindThoseThatAParameterHas) {
  DistinctValues values(2);
  RecordingBuilder rows(2);
  for (const auto& configuration : {Configuration{9, "b"}, {4, "a"}, {7, "b"}, {2, "c"}, {9, "a"}})
    rows.finish_row(values.positions(configuration), Status::ok, {});
  Recording r = finished(rows, 2);
  r.parameters[0].values = {8, 4, 5};
  values.finish(r);
  EXPECT_THAT(r.parameters[0].values, ElementsAre(8, 4, 5, 2, 7, 9));
  EXPECT_THAT(r.parameters[1].values, ElementsAre("a", "b", "c"));
  EXPECT_EQ(r.configuration(0), (Configuration{9, "b"}));
  EXPECT_EQ(r.configuration(1), (Configuration{4, "a"}));
  EXPECT_EQ(r.configuration(2), (Configuration{7, "b"}));
  EXPECT_EQ(r.configuration(3), (Configuration{2, "c"}));
  EXPECT_EQ(r.configuration(4), (Configuration{9, "a"}));
}

}  // namespace
}  // namespace ergotune
