#include "analysis/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// One parameter x from 1, these times; a time below zero failed. `fixed` has one value and tells nothing apart.
Recording recorded(const std::vector<double>& times, int fixed = 0) {
  Recording recording;
  recording.name = "p";
  recording.parameters.resize(2);
  recording.parameters[0].name = "x";
  recording.parameters[1].name = "size";
  recording.parameters[1].values = {Value(fixed)};
  recording.columns.push_back({.name = "time"});
  for (std::size_t i = 0; i < times.size(); ++i) {
    recording.parameters[0].values.emplace_back(static_cast<int>(i) + 1);
    recording.positions.insert(recording.positions.end(), {static_cast<std::uint32_t>(i), 0});
    recording.statuses.push_back(times[i] > 0 ? Status::ok : Status::compile_error);
    recording.columns[0].value.push_back(times[i] > 0 ? times[i] : NAN);
    recording.columns[0].standard_error.push_back(0.01f);
  }
  return recording;
}

TEST(Comparing, TellsWhatOnesBestLosesInTheOther) {
  Recording a = recorded({5, 2, 3, 4, -1}, 100);
  a.row_warnings[1] = {"stopped early: it cannot win"};
  const Recording b = recorded({5, 3, 2.5, 4, 1}, 200);
  Objective x = Objective::parse({"time", {}, {}}, {}), y = Objective::parse({"time", {}, {}}, {});
  const Comparison found = compare_sessions({{&a, &x}, {&b, &y}}, 1);
  EXPECT_EQ(found.sides[0].usable, 4u);
  EXPECT_EQ(found.sides[0].best, 1u);
  EXPECT_EQ(found.sides[1].value, 1);
  ASSERT_EQ(found.pairs.size(), 1u);
  const auto& pair = found.pairs[0];
  EXPECT_EQ(pair.common, 4u);
  EXPECT_DOUBLE_EQ(*pair.loss_of_a_in_b, 2) << "3 s in the place of 1 s";
  EXPECT_NEAR(pair.loss_error_a_in_b, 3 * std::hypot(0.01, 0.01 / 3), 1e-6);
  EXPECT_FALSE(pair.loss_of_b_in_a) << "it failed there";
  EXPECT_NEAR(*pair.rank_correlation, 0.8, 1e-12);
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].configuration, "x=2");
  EXPECT_EQ(found.rows[0].places, (std::vector<std::optional<std::size_t>>{1, 3}));
  EXPECT_GT(found.rows[0].half_widths[0], 0.01);
  EXPECT_EQ(found.rows[0].marks, (std::vector<std::string>{"!", ""}));
  EXPECT_EQ(found.rows[1].values, (std::vector<std::optional<double>>{std::nullopt, 1}));
  EXPECT_EQ(found.points.size(), 4u);
}

TEST(Comparing, OfLargerIsBetterTheLossIsTurned) {
  const Recording a = recorded({5, 2}), b = recorded({4, 8});
  const ObjectiveSpec most{"time", Direction::maximise, {}};
  Objective x = Objective::parse(most, {}), y = Objective::parse(most, {});
  const Comparison found = compare_sessions({{&a, &x}, {&b, &y}});
  EXPECT_DOUBLE_EQ(*found.pairs[0].loss_of_a_in_b, 1) << "half of what can be had";
  EXPECT_DOUBLE_EQ(*found.pairs[0].loss_of_b_in_a, 1.5);
  EXPECT_FALSE(found.pairs[0].rank_correlation) << "of two nothing is said";
}

TEST(Comparing, NothingInCommonIsSaid) {
  const Recording a = recorded({1, 2, 3});
  Recording b = recorded({1, 2, 3});
  b.parameters[0].name = "y";
  Objective x = Objective::parse({"time", {}, {}}, {}), y = Objective::parse({"time", {}, {}}, {});
  EXPECT_THROW(compare_sessions({{&a, &x}, {&b, &y}}), UserError);
}

TEST(RankCorrelation, IsThatOfRanks) {
  EXPECT_DOUBLE_EQ(*rank_correlation({1, 2, 3, 4}, {10, 100, 1000, 10000}), 1);
  EXPECT_DOUBLE_EQ(*rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_NEAR(*rank_correlation({1, 2, 2, 3}, {1, 2, 3, 4}), 0.9486832980505138, 1e-12)
      << "ties share their rank (SciPy)";
  EXPECT_FALSE(rank_correlation({1, 1, 1}, {1, 2, 3}));
}

}  // namespace
}  // namespace ergotune
