// Which of a configuration's rows counts: what it was searched as, what a confirmation made of it, and what
// came after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A row of configuration `x`; its message is its name.
StoredRow row_of(int x, RowKind kind, const std::string& name, Status status = Status::ok, std::int64_t run = 0) {
  StoredRow row;
  row.configuration = {x};
  row.kind = kind;
  row.run = run;
  row.measurement.status = status;
  row.measurement.message = name;
  return row;
}

std::vector<std::string> names(const std::vector<StoredRow>& rows) {
  std::vector<std::string> result;
  for (const StoredRow& row : rows) result.push_back(row.measurement.message);
  return result;
}

RunInfo run_of(std::int64_t id, const std::string& objective, int rounds) {
  RunInfo run;
  run.id = id;
  run.objective.text = objective;
  run.confirmed = rounds;
  return run;
}

TEST(CountingRows, AConfirmationsMeanCountsAndSaysWhatItIsTheMeanOf) {
  const auto rows = current_rows(
      {row_of(1, RowKind::search, "one searched"), row_of(2, RowKind::search, "two searched"),
       row_of(1, RowKind::confirmation, "a round", Status::ok, 5),
       row_of(1, RowKind::confirmed, "first mean", Status::ok, 4),
       row_of(1, RowKind::confirmed, "last mean", Status::ok, 5), row_of(3, RowKind::reference, "a default")},
      {run_of(4, "time", 3), run_of(5, "energy", 7)});
  ASSERT_THAT(names(rows), ElementsAre("last mean", "two searched"));
  EXPECT_EQ(rows[0].rounds, 1) << "the rounds of this configuration, not the most of any in the run";
  ASSERT_TRUE(rows[0].confirmed_for);
  EXPECT_EQ(rows[0].confirmed_for->text, "energy");
  ASSERT_TRUE(rows[0].searched);
  EXPECT_EQ(rows[0].searched->message, "one searched");
  EXPECT_EQ(rows[1].rounds, 0);
  EXPECT_FALSE(rows[1].confirmed_for);
  EXPECT_FALSE(rows[1].searched);
}

TEST(CountingRows, AMeanOfARunThatIsNotKnownCountsAsWell) {
  const auto rows = current_rows({row_of(1, RowKind::confirmed, "mean", Status::ok, 9)}, {run_of(4, "time", 3)});
  ASSERT_THAT(names(rows), ElementsAre("mean"));
  EXPECT_EQ(rows[0].rounds, 0);
  EXPECT_FALSE(rows[0].confirmed_for);
  EXPECT_FALSE(rows[0].searched) << "nobody knows what the search read";
}

// B1: stores of earlier versions hold means of failed rounds.
TEST(CountingRows, AConfirmationThatFailedTakesNothingFromTheSearch) {
  for (const auto& [status, counts] :
       {std::pair{Status::launch_error, "searched"}, std::pair{Status::unsupported, "searched"},
        std::pair{Status::wrong_result, "mean"}, std::pair{Status::not_converged, "mean"}})
    EXPECT_THAT(names(current_rows(
                    {row_of(1, RowKind::search, "searched"), row_of(1, RowKind::confirmed, "mean", status)}, {})),
                ElementsAre(counts));
}

TEST(CountingRows, WhatIsSearchedAnewIsNoLongerConfirmed) {
  EXPECT_THAT(names(current_rows(
                  {row_of(1, RowKind::confirmed, "mean"), row_of(1, RowKind::search, "anew", Status::timeout)}, {})),
              ElementsAre("anew"));
  EXPECT_THAT(
      names(current_rows({row_of(1, RowKind::confirmation, "round"), row_of(2, RowKind::reference, "default")}, {})),
      IsEmpty());
}

}  // namespace
}  // namespace ergotune
