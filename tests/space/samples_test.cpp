// Samples of a seed, tables, and walks in spaces of more parameters and values than random spaces have.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "brute_force.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;

Restriction must(const std::string& text) {
  Restriction restriction;
  restriction.expression = Expression::parse(text);
  return restriction;
}

std::size_t steps_between(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b, bool& adjacent) {
  std::size_t differing = 0;
  adjacent = true;
  for (std::size_t p = 0; p < a.size(); ++p) {
    differing += a[p] != b[p] ? 1 : 0;
    adjacent = adjacent && std::max(a[p], b[p]) - std::min(a[p], b[p]) <= 1;
  }
  return differing;
}

/// Neighbours of all kinds, look-up and numbering against the list of all.
void expect_walks(const SearchSpace& space) {
  std::vector<std::vector<std::uint32_t>> all(space.size(), std::vector<std::uint32_t>(space.dimensions()));
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    space.values_at(i, all[i]);
    ASSERT_EQ(space.index_of(all[i]), i);
  }
  ASSERT_TRUE(std::ranges::is_sorted(all));
  std::vector<ConfigurationIndex> found;
  for (ConfigurationIndex i = 0; i < space.size(); i += 1 + space.size() / 40) {
    std::vector<ConfigurationIndex> expected[3];
    for (ConfigurationIndex j = 0; j < space.size(); ++j) {
      bool adjacent = false;
      const std::size_t steps = steps_between(all[i], all[j], adjacent);
      if (steps == 1) expected[0].push_back(j);
      if (steps > 0 && adjacent) expected[1].push_back(j);
      if (steps == 1 && adjacent) expected[2].push_back(j);
    }
    for (const auto kind : {Neighbourhood::hamming, Neighbourhood::adjacent, Neighbourhood::strictly_adjacent}) {
      space.neighbours(i, kind, found);
      EXPECT_EQ(found, expected[static_cast<std::size_t>(kind)]) << "of " << i;
    }
  }
}

TEST(Walks, InSpacesOfManyParametersAndOfSeveralGroups) {
  std::vector<Parameter> parameters;
  std::string sum;
  for (int p = 0; p < 70; ++p) {
    parameters.push_back(counted(fmt::format("p{}", p), p % 9 == 4 ? 3 : 1));
    sum += fmt::format("{}p{}", p > 0 ? " + " : "", p);
  }
  const auto tied = SearchSpace::build(parameters, {must(sum + " <= 6")});
  EXPECT_EQ(test::all_of(tied), test::brute_force(parameters, {must(sum + " <= 6")}));
  expect_walks(tied);
  expect_walks(
      SearchSpace::build(parameters, {must("p4 + p40 <= 2"), must("p13 <= p58"), must("p22 != p67"), must("p31 < 2")}));
  const std::vector<Parameter> few{counted("a", 6), counted("b", 5), counted("c", 7), counted("d", 4)};
  expect_walks(SearchSpace::build(few, {must("a + c <= 7"), must("b >= d")}));
  expect_walks(SearchSpace::build(few, {must("a + d <= 7"), must("b * c != 4")}));
  expect_walks(SearchSpace::build(few, {}));
}

// More values than are looked at together, in any order: what fails for one must not end the look at others.
TEST(Walks, ParametersOfManyValuesInAnyOrder) {
  Parameter falling = counted("v", 0), shuffled = counted("v", 0), real = counted("v", 0), few = counted("v", 0);
  Random random(17);
  for (int i = 0; i < 1500; ++i) {
    falling.values.emplace_back(1500 - i);
    shuffled.values.emplace_back(i);
    real.values.emplace_back(0.5 * i);
    if (i % 3 == 0) few.values.emplace_back(i);
  }
  random.shuffle(std::span<Value>(shuffled.values));
  few.values.push_back(few.values[7]);  // one value is given twice
  Restriction function;
  function.function_names = {"v", "k"};
  function.function = [](const Scope& scope) { return scope("v")->as_real() + scope("k")->as_real() != 77; };
  for (const Parameter& many : {counted("v", 1500), counted("v", 64), counted("v", 65), falling, shuffled, real, few}) {
    for (const char* text :
         {"v + k < 90", "v < 1400 - k * 600", "v % 97 == k", "v * (k + 1) <= 700 and v >= 40", "v == k * 400",
          "v < 50 or v > 1450 - k", "not (v <= 1490)", "700 <= v + k < 720", "v // (k + 1) < 33"}) {
      const std::vector<Restriction> restrictions{must(text), function};
      const auto space = SearchSpace::build({counted("k", 3), many, counted("last", 2)}, restrictions);
      auto once = many;
      if (many.values.size() == few.values.size()) once.values.pop_back();
      EXPECT_EQ(test::all_of(space), test::brute_force({counted("k", 3), once, counted("last", 2)}, restrictions))
          << text;
      const auto alone = SearchSpace::build({counted("k", 3), many}, {must(text)});
      EXPECT_EQ(test::all_of(alone), test::brute_force({counted("k", 3), once}, {must(text)})) << text;
    }
  }
}

}  // namespace
}  // namespace ergotune
