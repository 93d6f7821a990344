// Samples of a seed, tables, and walks in spaces of more parameters and values than random spaces have.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "brute_force.hpp"
#include "ergotune/base/error.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;
using ::testing::ElementsAre;

Restriction must(const std::string& text) {
  Restriction restriction;
  restriction.expression = Expression::parse(text);
  return restriction;
}

// Whoever repeats a search with its seed begins with the same sample: base/random.hpp. A change that alters a
// line here says so in CHANGELOG.md.
TEST(Samples, OfASeedAreThoseOfEarlierReleases) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](const std::vector<ConfigurationIndex>& sample) {
    for (const ConfigurationIndex index : sample) hash = (hash ^ index) * 0x100000001b3;
  };
  const auto tied = SearchSpace::build({counted("a", 9), counted("b", 7), counted("c", 12), counted("d", 2)},
                                       {must("a * b <= c + 9"), must("d == 0 or a > 1")});
  const auto apart = SearchSpace::build(
      {counted("a", 90), counted("b", 40), counted("c", 5), counted("d", 11), counted("e", 3)},
      {must("a + b < 60"), must("c < d")});
  for (const SearchSpace* space : {&tied, &apart})
    for (const std::uint64_t seed : {1, 2, 3})
      for (const std::size_t count : {1, 5, 40, 300}) {
        Random random(seed);
        add(space->sample_distinct(count, random));
        add(space->latin_hypercube(count, random));
        add(space->low_discrepancy(count, random));
        add({random()});
      }
  EXPECT_EQ(hash, 0xc120e41535b17d41u) << fmt::format("0x{:016x}", hash);
}

TEST(Samples, NearestTakesAnyPoint) {
  const auto space = SearchSpace::build({counted("a", 5), counted("b", 5)}, {must("a + b <= 5")});
  const auto at = [&](std::vector<double> point) { return space.configuration(space.nearest(point)); };
  EXPECT_EQ(at({1.4, 2.6}), (Configuration{1, 3}));
  EXPECT_EQ(at({-9, 99}), (Configuration{0, 4}));
  EXPECT_EQ(at({std::nan(""), 3}), (Configuration{0, 3}));
  EXPECT_EQ(at({2}), (Configuration{2, 0})) << "what is not said is 0";
  EXPECT_EQ(at({99, -99}), (Configuration{4, 0}));
  EXPECT_EQ(at({3.9, 1.4}), (Configuration{4, 1}));
}

std::size_t steps_between(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                          bool& adjacent) {
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
  ASSERT_TRUE(std::is_sorted(all.begin(), all.end()));
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
    for (const auto kind :
         {Neighbourhood::hamming, Neighbourhood::adjacent, Neighbourhood::strictly_adjacent}) {
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
  expect_walks(SearchSpace::build(
      parameters, {must("p4 + p40 <= 2"), must("p13 <= p58"), must("p22 != p67"), must("p31 < 2")}));
  const std::vector<Parameter> few{counted("a", 6), counted("b", 5), counted("c", 7), counted("d", 4)};
  expect_walks(SearchSpace::build(few, {must("a + c <= 7"), must("b >= d")}));
  expect_walks(SearchSpace::build(few, {must("a + d <= 7"), must("b * c != 4")}));
  expect_walks(SearchSpace::build(few, {}));
}

TEST(Walks, OfATableAreThoseOfTheDiagram) {
  for (const int count : {256, 257}) {
    const std::vector<Parameter> parameters{counted("a", count), counted("b", 3)};
    const std::vector<Restriction> restrictions{must("(a + b) % 2 == 0 or a == 255")};
    const auto diagram = SearchSpace::build(parameters, restrictions);
    SpaceOptions options;
    options.materialise_limit = diagram.size();
    const auto table = SearchSpace::build(parameters, restrictions, options);
    EXPECT_TRUE(table.materialised());
    EXPECT_EQ(test::all_of(table), test::all_of(diagram));
    // a byte for each value where there are 256 of them, two where there are more
    EXPECT_GE(table.memory_bytes() - diagram.memory_bytes(), diagram.size() * (count > 256 ? 4 : 2));
    EXPECT_LT(table.memory_bytes() - diagram.memory_bytes(), diagram.size() * (count > 256 ? 5 : 3));
    options.materialise_limit = diagram.size() - 1;
    EXPECT_FALSE(SearchSpace::build(parameters, restrictions, options).materialised());
  }
}

TEST(Walks, ATableIsOfValuesThatTwoBytesHold) {
  SpaceOptions options;
  options.materialise_limit = 100'000;
  const auto most = SearchSpace::build({counted("a", 65536)}, {must("a % 7 == 1")}, options);
  EXPECT_TRUE(most.materialised());
  EXPECT_EQ(most.configuration(most.size() - 1), Configuration{65535});
  EXPECT_FALSE(SearchSpace::build({counted("a", 65537)}, {must("a % 7 == 1")}, options).materialised());
}

TEST(Walks, WhatIsNoConfigurationHasNoIndex) {
  const auto space = SearchSpace::build({counted("a", 3), counted("b", 3)}, {must("a != b")});
  EXPECT_FALSE(space.index_of(Configuration{1}));
  EXPECT_FALSE(space.index_of(Configuration{1, 0, 0}));
  EXPECT_FALSE(space.index_of(std::vector<std::uint32_t>{1}));
  EXPECT_FALSE(space.index_of(std::vector<std::uint32_t>{1, 3}));
  EXPECT_FALSE(space.index_of(Configuration{2, 2}));
  EXPECT_EQ(space.index_of(Configuration{2, 1}), 5u);
  EXPECT_FALSE(SearchSpace::build({counted("a", 3)}, {must("a > 3")}).index_of(Configuration{1}));
  EXPECT_THROW(SearchSpace::from_configurations({counted("a", 3)}, {{1, 2}}), UserError);
  EXPECT_EQ(SearchSpace::from_configurations({}, {{}, {}}).size(), 1u);
  EXPECT_EQ(SearchSpace::from_configurations({}, {}).size(), 0u);
  EXPECT_EQ(SearchSpace::from_configurations({counted("a", 3), counted("b", 4)}, {{1, 2}}).cartesian_size(),
            12);
}

// The same compiled and evaluated, where numbers are large, negative, real or of many values.
TEST(Walks, RestrictionsOverUnusualNumbersMeanWhatTheEvaluatorSays) {
  Parameter large, real, signs;
  large.name = "large";
  large.values = {1, 4294967295, 4294967296, 4294967299, 8589934592};
  real.name = "real";
  real.values = {-2.5, -1.0, 0.5, 1.0, 3.0, 7.25};
  signs.name = "signs";
  signs.values = {-7, -4, -1, 2, 3, 6};
  const std::vector<Parameter> parameters{large, real, signs, counted("few", 4)};
  for (const char* text : {"large % 3 == few % 3",
                           "large // (few + 1) % 2 == 0",
                           "signs % 4 == few",
                           "signs // 2 < few - 1",
                           "real % 2 > 0.6",
                           "real // 0.75 >= signs",
                           "large % signs == few",
                           "large * 2 > 8589934590 + few",
                           "abs(signs) > abs(real)",
                           "max(signs, real) < few",
                           "min(signs, few) == -signs or real < 0",
                           "few / (signs + 0.5) < 0.2",
                           "sqrt(abs(real)) > 1",
                           "2 ** few > signs",
                           "round(real) == few or ceil(real) == signs or floor(real) == -1",
                           "int(real) * signs >= 2",
                           "log2(large) >= 32 + few * 0.5",
                           "exp(real) < signs",
                           "real ** 2 > few",
                           "signs < real <= few",
                           "signs == real + 1",
                           "large == 4294967296 or few != 2 and signs != 3",
                           "(signs if real > 0 else few) > 2",
                           "not (signs < few or real == 3)",
                           "real + few != signs",
                           "-signs >= few",
                           "large in (1, 4294967296) and signs not in (2, 3, -7)"}) {
    const std::vector<Restriction> restrictions{must(text)};
    EXPECT_EQ(test::all_of(SearchSpace::build(parameters, restrictions)),
              test::brute_force(parameters, restrictions))
        << text;
  }
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
    for (const char* text : {"v + k < 90", "v < 1400 - k * 600", "v % 97 == k", "v * (k + 1) <= 700 and v >= 40", "v == k * 400",
                             "v < 50 or v > 1450 - k", "not (v <= 1490)", "700 <= v + k < 720", "v // (k + 1) < 33"}) {
      const std::vector<Restriction> restrictions{must(text), function};
      const auto space = SearchSpace::build({counted("k", 3), many, counted("last", 2)}, restrictions);
      auto once = many;
      if (many.values.size() == few.values.size()) once.values.pop_back();
      EXPECT_EQ(test::all_of(space), test::brute_force({counted("k", 3), once, counted("last", 2)}, restrictions)) << text;
      const auto alone = SearchSpace::build({counted("k", 3), many}, {must(text)});
      EXPECT_EQ(test::all_of(alone), test::brute_force({counted("k", 3), once}, {must(text)})) << text;
    }
  }
}

// Lists that depend on others, of many values and of few, beside conditions that fall.
TEST(Walks, DependentListsOfManyValues) {
  Parameter range;
  range.name = "v";
  range.range = DependentRange{Expression::parse("k * 100"), Expression::parse("900 - k"), Expression::parse("1 if k < 2 else 3")};
  Parameter down = range;
  down.range = DependentRange{Expression::parse("900 - k"), Expression::parse("k"), Expression::parse("-1 - k")};
  Parameter list;
  list.name = "v";
  list.generator = [](const Scope& earlier) {
    std::vector<Value> values;
    for (int i = 0; i < 400; ++i) values.emplace_back(earlier("k")->as_integer() * i % 401);
    return values;
  };
  for (const Parameter& parameter : {range, down, list})
    for (const char* text : {"v < 310", "v + w < 310", "v % 7 == w", "v > 250 + w and v < 600"}) {
      const std::vector<Parameter> parameters{counted("k", 4), parameter, counted("w", 3)};
      std::vector<Configuration> expected = test::brute_force(parameters, {must(text)});
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      const auto space = SearchSpace::build(parameters, {must(text)});
      std::vector<Configuration> found = test::all_of(space);
      EXPECT_EQ(std::set<Configuration>(found.begin(), found.end()), std::set<Configuration>(expected.begin(), expected.end())) << text;
      EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
    }
}

TEST(Effects, AreToldOfEveryRestriction) {
  Restriction function;
  function.function_names = {"a"};
  function.function = [](const Scope& scope) { return scope("a")->as_integer() < 3; };
  function.name = "small";
  function.restriction_class = RestrictionClass::performance;
  const auto space = SearchSpace::build({counted("a", 5), counted("b", 2)}, {function, must("a != 1")});
  const auto effects = space.explain();
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].label, "small");
  EXPECT_EQ(effects[0].expression, "");
  EXPECT_EQ(effects[0].restriction_class, RestrictionClass::performance);
  EXPECT_EQ(effects[0].removed_alone, 4);
  EXPECT_EQ(effects[1].expression, "a != 1");
  EXPECT_EQ(effects[1].removed_only_by_it, 2);
  EXPECT_GE(space.build_seconds(), 0);
  EXPECT_LT(space.build_seconds(), 600) << "how long it took, not when";
  EXPECT_TRUE(SearchSpace::build({counted("a", 5)}, {}).explain().empty());
}

TEST(Effects, OfAContradictionAreToldInWords) {
  Restriction function;
  function.function_names = {"a"};
  function.function = [](const Scope&) { return false; };
  function.name = "never";
  const auto why = [](std::vector<Restriction> restrictions) {
    return SearchSpace::build({counted("a", 4), counted("b", 4)}, std::move(restrictions)).why_empty();
  };
  EXPECT_EQ(why({}), "the search space is not empty: it has 16 configurations");
  EXPECT_EQ(why({must("a < 9"), function}), "no configuration meets the restriction \"never\"");
  EXPECT_EQ(why({must("a > b"), must("b < 3"), must("b > a")}),
            "no configuration meets these 2 restrictions together, though any one of them can be met: \"a > "
            "b\", \"b > a\"");
  EXPECT_EQ(why({must("a + b >= 5"), must("a < 3"), must("b < 3")}),
            "no configuration meets these 3 restrictions together, though any 2 of them can be met: \"a + b "
            ">= 5\", \"a < 3\", \"b < 3\"");
}

}  // namespace
}  // namespace ergotune
