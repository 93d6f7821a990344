// Values that depend on other parameters: unions of ranges, lists from functions, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "brute_force.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;
using ::testing::HasSubstr;

Parameter ranged(const std::string& start, const std::string& stop, const std::string& step) {
  Parameter parameter;
  parameter.name = "r";
  parameter.range = DependentRange{Expression::parse(start), Expression::parse(stop), Expression::parse(step)};
  parameter.place = {"space.toml", 3, 1};
  return parameter;
}

std::string refusal(std::vector<Parameter> parameters) {
  return error_of([&] { SearchSpace::build(std::move(parameters), {}); });
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

}  // namespace
}  // namespace ergotune
