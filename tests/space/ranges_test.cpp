// Values that depend on other parameters: unions of ranges, lists from functions, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "brute_force.hpp"
#include "ergotune/base/error.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;
using ::testing::HasSubstr;

Parameter ranged(const std::string& start, const std::string& stop, const std::string& step) {
  Parameter parameter;
  parameter.name = "r";
  parameter.range =
      DependentRange{Expression::parse(start), Expression::parse(stop), Expression::parse(step)};
  parameter.place = {"space.toml", 3, 1};
  return parameter;
}

std::string refusal(std::vector<Parameter> parameters) {
  try {
    SearchSpace::build(std::move(parameters), {});
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

/// "a if k == 0 else b if k == 1 else c".
std::string chosen(const std::vector<std::int64_t>& of) {
  std::string text;
  for (std::size_t k = 0; k + 1 < of.size(); ++k) text += fmt::format("{} if k == {} else ", of[k], k);
  return text + std::to_string(of.back());
}

void expect_union(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop,
                  const std::vector<std::int64_t>& step) {
  const std::vector<Parameter> parameters{counted("k", static_cast<int>(start.size())),
                                          ranged(chosen(start), chosen(stop), chosen(step))};
  const auto expected = test::brute_force(parameters, {});
  std::set<Value> values;
  for (const auto& configuration : expected) values.insert(configuration[1]);
  const std::string text = fmt::format("{} | {} | {}", chosen(start), chosen(stop), chosen(step));
  if (values.empty()) {
    EXPECT_THAT(refusal(parameters), HasSubstr("has no values")) << text;
    return;
  }
  const auto space = SearchSpace::build(parameters, {});
  EXPECT_EQ(space.parameters()[1].values, std::vector<Value>(values.begin(), values.end())) << text;
  EXPECT_EQ(test::all_of(space), expected) << text;
}

TEST(Ranges, InsideOneWithAWiderStepKeepTheirOwnValues) {
  expect_union({0, 1}, {20, 8}, {2, 1});
  expect_union({20, 7}, {0, 2}, {-2, -1});
  expect_union({0, 3}, {20, 8}, {1, 2});
  expect_union({20, 0}, {0, 21}, {-1, 1});
  expect_union({0, 10}, {10, 20}, {1, 1});
  expect_union({5, 0, 4}, {6, 5, 9}, {1, 1, 1});
}

TEST(Ranges, OfAnySignAndStepAreUnited) {
  Random random(14);
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t count = 1 + random.below(4);
    std::vector<std::int64_t> start, stop, step;
    for (std::size_t k = 0; k < count; ++k) {
      start.push_back(static_cast<std::int64_t>(random.below(16)) - 5);
      stop.push_back(static_cast<std::int64_t>(random.below(16)) - 5);
      step.push_back(1 + static_cast<std::int64_t>(random.below(3)));
      if (random.chance(0.5)) step.back() = -step.back();
    }
    expect_union(start, stop, step);
  }
}

TEST(Ranges, SayWhatTheyCannotBe) {
  EXPECT_THAT(
      refusal({counted("k", 2), ranged("0", "k + 2.5", "1")}),
      ::testing::AllOf(HasSubstr("space.toml:3:1"), HasSubstr("needs whole numbers; \"k + 2.5\" gives 2.5")));
  EXPECT_THAT(refusal({counted("k", 2), ranged("0", "4", "k")}),
              HasSubstr("the step of the range of parameter \"r\" is 0"));
  EXPECT_THAT(refusal({ranged("0", "4000002", "1")}), HasSubstr("has 4e+06 values; the limit is 4000000"));
  EXPECT_THAT(refusal({ranged("9000000", "0", "-2")}), HasSubstr("has 4.5e+06 values"));
  EXPECT_THAT(refusal({counted("k", 2), ranged("k * 70000000", "k * 70000000 + 2", "1")}),
              HasSubstr("span 0 to 70000001: too far"));
  EXPECT_EQ(SearchSpace::build({counted("k", 2), ranged("k * 1000000", "k * 1000000 + 2", "1")}, {}).size(),
            4u);
  auto many = std::vector<Parameter>{counted("a", 200), counted("b", 200), counted("c", 200),
                                     ranged("a", "a + b + c", "1")};
  EXPECT_THAT(refusal(many), HasSubstr("depend on too many combinations of others (over 4000000)"));
  EXPECT_EQ(SearchSpace::build({counted("a", 3000), counted("b", 3000), ranged("0", "2", "1")}, {}).size(),
            18'000'000u)
      << "what it does not read does not count";
}

TEST(Generators, ListsAreSortedEachValueOnce) {
  Parameter list;
  list.name = "r";
  list.generator = [](const Scope& earlier) {
    // what it reads depends on what it has read
    if (earlier("b")->as_integer() == 1) return std::vector<Value>{9, 3, 9};
    return earlier("a")->as_integer() < 2 ? std::vector<Value>{5} : std::vector<Value>{7, 3};
  };
  const std::vector<Parameter> parameters{counted("a", 3), counted("unread", 2), counted("b", 3), list};
  const auto space = SearchSpace::build(parameters, {});
  EXPECT_EQ(space.parameters()[3].values, (std::vector<Value>{3, 5, 7, 9}));
  std::vector<Configuration> expected;
  for (int a = 0; a < 3; ++a)
    for (int unread = 0; unread < 2; ++unread)
      for (int b = 0; b < 3; ++b)
        for (const int value : b == 1 ? std::vector{3, 9} : a < 2 ? std::vector{5} : std::vector{3, 7})
          expected.push_back({a, unread, b, value});
  EXPECT_EQ(test::all_of(space), expected);
}

}  // namespace
}  // namespace ergotune
