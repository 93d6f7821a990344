// What users meet: numbering, samples, dependent parameters, what restrictions do, and messages.
#include "ergotune/space.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "brute_force.hpp"
#include "definitions.hpp"
#include "error_of.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;
using test::listed;
using ::testing::HasSubstr;

Parameter ranged(std::string name, const char* start, const char* stop, const char* step) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.range = DependentRange{Expression::parse(start), Expression::parse(stop), Expression::parse(step)};
  return parameter;
}

Restriction must(const char* text, const char* name = "") {
  Restriction restriction;
  restriction.expression = Expression::parse(text, SourcePlace{"space.toml", 7, 3});
  restriction.name = name;
  return restriction;
}

std::string message_of(const std::function<void()>& f) {
  return error_of([&] { f(); }, "(no error)");
}

TEST(SearchSpace, OfNoParametersHasOneConfiguration) {
  const auto space = SearchSpace::build({}, {});
  EXPECT_EQ(space.size(), 1u);
  EXPECT_EQ(space.configuration(0), Configuration{});
  EXPECT_EQ(SearchSpace::build({}, {must("1 > 2")}).size(), 0u);
}

TEST(SearchSpace, DefaultsAreThoseGivenElseTheFirstValues) {
  Parameter given = counted("a", 3);
  given.default_value = 2;
  const auto space = SearchSpace::build({given, listed("b", {"x", "y"})}, {});
  ASSERT_TRUE(space.default_configuration());
  EXPECT_EQ(space.configuration(*space.default_configuration()), (Configuration{2, "x"}));
  EXPECT_EQ(SearchSpace::build({given}, {must("a < 2")}).default_configuration(), std::nullopt);
}

// Pairs that interleave: ten independent groups must not be multiplied out.
TEST(SearchSpace, KeepsInterleavedGroupsApart) {
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;
  for (int i = 0; i < 10; ++i) parameters.push_back(counted("a" + std::to_string(i), 8));
  for (int i = 0; i < 10; ++i) {
    parameters.push_back(counted("b" + std::to_string(i), 8));
    restrictions.push_back(must(("a" + std::to_string(i) + " + b" + std::to_string(i) + " <= 7").c_str()));
  }
  const auto space = SearchSpace::build(parameters, restrictions);
  EXPECT_EQ(space.size(), 3656158440062976u);  // 36^10
  EXPECT_LT(space.memory_bytes(), 100'000u);
  Random random(3);
  std::vector<std::uint32_t> values(20), previous(20);
  for (int i = 0; i < 2000; ++i) {
    const auto index = random.below(space.size() - 1);
    space.values_at(index, previous);
    space.values_at(index + 1, values);
    EXPECT_LT(previous, values);  // lexicographic order
    EXPECT_EQ(space.index_of(values), index + 1);
    for (int g = 0; g < 10; ++g) EXPECT_LE(values[g] + values[g + 10], 7u);
  }
  std::vector<ConfigurationIndex> neighbours;
  space.neighbours(12345678901234, Neighbourhood::strictly_adjacent, neighbours);
  space.values_at(12345678901234, previous);
  EXPECT_FALSE(neighbours.empty());
  for (const auto neighbour : neighbours) {
    space.values_at(neighbour, values);
    int differing = 0;
    for (std::size_t p = 0; p < 20; ++p) differing += values[p] != previous[p];
    EXPECT_EQ(differing, 1);
  }
}

TEST(SearchSpace, DependentRangesAsBeastWritesThem) {
  const std::vector<Parameter> parameters{counted("dim_m", 8, 1), ranged("blk_m", "dim_m", "limit + 1", "dim_m"),
                                          ranged("blk_m_a", "blk_m", "0", "-1")};
  SpaceOptions options;
  options.constants = {{"limit", 24}};
  const auto space = SearchSpace::build(parameters, {must("blk_m % blk_m_a == 0")}, options);
  EXPECT_EQ(test::all_of(space), test::brute_force(parameters, {must("blk_m % blk_m_a == 0")}, options.constants));
  EXPECT_EQ(space.parameters()[1].values.size(), 24u);
}

TEST(SearchSpace, GeneratorsSeeEarlierParametersAndConstants) {
  int runs = 0;
  Parameter tile;
  tile.name = "tile";
  tile.generator = [&runs](const Scope& earlier) {
    ++runs;
    std::vector<Value> values;
    if (earlier("mode")->as_string() == "off") return std::vector<Value>{0};
    for (std::int64_t t = 1; t <= earlier("block")->as_integer(); t *= 2)
      if (t <= earlier("most")->as_integer()) values.emplace_back(t);
    return values;
  };
  const std::vector<Parameter> parameters{listed("mode", {"off", "on"}), counted("unrelated", 50),
                                          listed("block", {1, 2, 4, 8}), tile};
  SpaceOptions options;
  options.constants = {{"most", 4}};
  const auto space = SearchSpace::build(parameters, {}, options);
  EXPECT_EQ(space.size(), 50u * (4 + (1 + 2 + 3 + 3)));
  EXPECT_LE(runs, 5);  // it reads mode, then block: 1 + 4 traces, whatever else there is
  EXPECT_EQ(test::all_of(space), test::brute_force(parameters, {}, options.constants));
}

TEST(SearchSpace, RestrictionsAsFunctions) {
  Restriction restriction;
  restriction.name = "by function";
  restriction.function_names = {"a", "c"};
  restriction.function = [](const Scope& scope) { return scope("a")->as_integer() * 2 == scope("c")->as_integer(); };
  const auto space = SearchSpace::build({counted("a", 5), counted("b", 2), counted("c", 9)}, {restriction});
  EXPECT_EQ(space.size(), 10u);
}

TEST(SearchSpace, TextsAndMixedValues) {
  const std::vector<Parameter> parameters{listed("layout", {"row", "column", "tiled"}), listed("n", {1, 2.5, "auto"}),
                                          counted("k", 4)};
  const std::vector<Restriction> restrictions{must("layout != 'tiled' or k > 1"), must("n == 'auto' or n * 2 <= k + 3"),
                                              must("layout < 's'")};
  const auto space = SearchSpace::build(parameters, restrictions);
  EXPECT_EQ(test::all_of(space), test::brute_force(parameters, restrictions));
}

TEST(SearchSpace, CompiledOccupancyIsTheEvaluators) {
  SpaceOptions options;
  options.constants = {{"device.max_blocks_per_multiprocessor", 16},
                       {"device.max_threads_per_multiprocessor", 2048},
                       {"device.registers_per_multiprocessor", 65536},
                       {"device.shared_memory_per_multiprocessor", 49152},
                       {"device.warp_size", 32}};
  const std::vector<Parameter> parameters{listed("threads", {32, 64, 96, 100, 256, 1024}), counted("registers", 256),
                                          listed("shared", {0, 1, 256, 257, 6000, 49152, 60000})};
  for (const char* text :
       {"occupancy(threads, registers, shared) >= 3", "occupancy(threads, registers, shared) == 0",
        "occupancy(threads, registers, 0) * threads / device.max_threads_per_multiprocessor > 0.8"}) {
    const std::vector<Restriction> restrictions{must(text)};
    const auto space = SearchSpace::build(parameters, restrictions, options);
    EXPECT_EQ(test::all_of(space), test::brute_force(parameters, restrictions, options.constants)) << text;
  }
}

TEST(SearchSpace, FromConfigurationsIsSortedAndFree) {
  const std::vector<Parameter> parameters{listed("a", {4, 2}), listed("b", {"x", "y"})};
  const auto space = SearchSpace::from_configurations(parameters, {{2, "x"}, {4, "y"}, {2, "x"}});
  EXPECT_EQ(test::all_of(space), (std::vector<Configuration>{{4, "y"}, {2, "x"}}));
  EXPECT_EQ(space.index_of(Configuration{2, "x"}), 1u);
  EXPECT_EQ(space.index_of(Configuration{2, "y"}), std::nullopt);
  EXPECT_EQ(space.index_of(Configuration{3, "y"}), std::nullopt);
  EXPECT_TRUE(SearchSpace::from_configurations(parameters, {}).empty());
  EXPECT_THAT(message_of([&] { SearchSpace::from_configurations(parameters, {{3, "x"}}); }), HasSubstr("not a value"));
}

TEST(SearchSpace, TableReadsAsTheDiagram) {
  SpaceOptions options;
  options.materialise_limit = 100'000;
  for (const int count : {40, 300}) {  // one byte a value, and two
    const std::vector<Parameter> parameters{counted("a", count), counted("b", 7), counted("c", 5)};
    const std::vector<Restriction> restrictions{must("(a + b) % 3 != c % 3")};
    const auto table = SearchSpace::build(parameters, restrictions, options);
    const auto diagram = SearchSpace::build(parameters, restrictions);
    EXPECT_TRUE(table.materialised());
    EXPECT_FALSE(diagram.materialised());
    EXPECT_GT(table.memory_bytes(), diagram.memory_bytes());
    EXPECT_EQ(test::all_of(table), test::all_of(diagram));
  }
}

// ---- samples

TEST(Sampling, IsUniform) {
  const auto space = SearchSpace::build({counted("a", 6), counted("b", 6), counted("c", 6)}, {must("a * b <= c + 4")});
  Random random(11);
  std::vector<double> hits(space.size(), 0);
  const int draws = 200'000;
  for (int i = 0; i < draws; ++i) ++hits[space.sample(random)];
  const double expected = static_cast<double>(draws) / static_cast<double>(space.size());
  double chi_square = 0;
  for (const double count : hits) chi_square += (count - expected) * (count - expected) / expected;
  const double degrees = static_cast<double>(space.size() - 1);
  EXPECT_LT(chi_square, degrees + 5 * std::sqrt(2 * degrees));
}

TEST(Sampling, DistinctSamplesAreDistinct) {
  const auto space = SearchSpace::build({counted("a", 30), counted("b", 30)}, {must("a + b < 30")});
  Random random(5);
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{20}, std::size_t{300}, std::size_t{465}, std::size_t{1000}}) {
    for (int method = 0; method < 3; ++method) {
      const auto sample = method == 0   ? space.sample_distinct(count, random)
                          : method == 1 ? space.latin_hypercube(count, random)
                                        : space.low_discrepancy(count, random);
      EXPECT_EQ(sample.size(), std::min<std::size_t>(count, space.size()));
      EXPECT_EQ(std::set<ConfigurationIndex>(sample.begin(), sample.end()).size(), sample.size());
      for (const auto index : sample) EXPECT_LT(index, space.size());
    }
  }
}

TEST(Sampling, SpreadSamplesCoverEveryValue) {
  const auto space = SearchSpace::build({counted("a", 16), counted("b", 16), counted("c", 16)}, {});
  Random random(9);
  for (const bool hypercube : {true, false}) {
    const auto sample = hypercube ? space.latin_hypercube(16, random) : space.low_discrepancy(64, random);
    for (std::size_t p = 0; p < 3; ++p) {
      std::set<std::uint32_t> seen;
      std::vector<std::uint32_t> values(3);
      for (const auto index : sample) {
        space.values_at(index, values);
        seen.insert(values[p]);
      }
      EXPECT_GE(seen.size(), hypercube ? 16u : 14u) << "parameter " << p;
    }
  }
}

TEST(Sampling, SameSeedSameSample) {
  const auto space = SearchSpace::build({counted("a", 50), counted("b", 50)}, {must("a != b")});
  Random first(4), second(4);
  EXPECT_EQ(space.latin_hypercube(25, first), space.latin_hypercube(25, second));
  EXPECT_EQ(space.low_discrepancy(25, first), space.low_discrepancy(25, second));
  EXPECT_EQ(space.sample_distinct(25, first), space.sample_distinct(25, second));
}

// ---- explanations and messages

TEST(Explain, CountsWhatEachRestrictionRemoves) {
  const auto space = SearchSpace::build({counted("a", 10), counted("b", 10)},
                                        {must("a < 5", "small a"), must("a + b < 8"), must("a < 7", "also small")});
  const auto effects = space.explain();
  ASSERT_EQ(effects.size(), 3u);
  EXPECT_EQ(effects[0].label, "small a");
  EXPECT_EQ(effects[0].expression, "a < 5");
  EXPECT_EQ(effects[0].removed_alone, 50);
  EXPECT_EQ(effects[0].removed_only_by_it, 3 + 2);  // a of 5 and 6, which "also small" lets pass
  EXPECT_EQ(effects[1].removed_alone, 100 - 36);
  EXPECT_FALSE(effects[1].redundant);
  EXPECT_EQ(effects[2].removed_alone, 30);
  EXPECT_TRUE(effects[2].redundant);
}

TEST(WhyEmpty, NamesTheSmallestContradiction) {
  const auto space = SearchSpace::build(
      {counted("a", 10), counted("b", 10)},
      {must("b > 2"), must("a * b >= 30", "enough work"), must("a + b <= 12", "fits"), must("b < 9")});
  EXPECT_TRUE(space.why_empty().find("not empty") != std::string::npos);
  const auto empty = SearchSpace::build(
      {counted("a", 10), counted("b", 10)},
      {must("b > 2"), must("a * b >= 30", "enough work"), must("a + b <= 12", "fits"), must("a + b == 2", "tiny")});
  EXPECT_TRUE(empty.empty());
  EXPECT_THAT(empty.why_empty(), HasSubstr("tiny"));
  EXPECT_THAT(empty.why_empty(), HasSubstr("2 restrictions"));
  EXPECT_THAT(empty.why_empty(), ::testing::Not(HasSubstr("fits")));
  EXPECT_THAT(SearchSpace::build({counted("a", 3)}, {must("a > 5")}).why_empty(), HasSubstr("\"a > 5\""));
}

TEST(Messages, NameTheRestrictionAndWhatToDo) {
  const auto build = [](std::vector<Parameter> parameters, std::vector<Restriction> restrictions) {
    return message_of([&] { SearchSpace::build(std::move(parameters), std::move(restrictions)); });
  };
  EXPECT_THAT(build({counted("block_x", 3)}, {must("blok_x < 2", "few")}),
              ::testing::AllOf(HasSubstr("space.toml:7:3"), HasSubstr("\"blok_x\""), HasSubstr("few"),
                               HasSubstr("did you mean \"block_x\"?")));
  EXPECT_THAT(build({counted("x", 3)}, {must("x < device.warp_size")}), HasSubstr("device profile"));
  EXPECT_THAT(build({counted("a", 3), counted("b", 3)}, {must("12 % b == 0", "divides")}),
              ::testing::AllOf(HasSubstr("division by zero"), HasSubstr("divides"), HasSubstr("b=0")));
  EXPECT_THAT(build({counted("a", 3)}, {must("a / 0 > 1")}), HasSubstr("division by zero"));
  EXPECT_THAT(build({counted("a", 3, 1 << 20)}, {must("a * a * a * a > 0")}), HasSubstr("64 bits"));
  EXPECT_THAT(build({listed("a", {})}, {}), HasSubstr("has no values"));
  EXPECT_THAT(build({counted("a", 2), counted("a", 2)}, {}), HasSubstr("given twice"));
  EXPECT_THAT(build({ranged("a", "b", "4", "1"), counted("b", 2)}, {}), HasSubstr("does not come before"));
  EXPECT_THAT(build({counted("b", 2), ranged("a", "0", "4", "b")}, {}), HasSubstr("step"));
  EXPECT_THAT(build({listed("a", {"x", 1})}, {must("a < 2")}), HasSubstr("no order"));
  std::vector<Parameter> many;
  for (int i = 0; i < 20; ++i) many.push_back(counted("p" + std::to_string(i), 10));
  EXPECT_THAT(build(many, {must("p0 < 9")}), ::testing::AllOf(HasSubstr("2^63"), HasSubstr("9e+19")));
}

TEST(Messages, TellTheConfigurationThatCannotBeEvaluated) {
  for (int a = 1; a <= 4; ++a)
    for (int b = 2; b <= 5; ++b) {
      if (a > b) continue;
      const int c = 100 * a + 10 * b;
      const std::string said = message_of([&] {
        SearchSpace::build({counted("a", 4, 1), counted("b", 4, 2), listed("c", {5, 700, c, 6})},
                           {must("a <= b"), must("a + b != 4"), must("12 % (a * 100 + b * 10 - c) < 12")});
      });
      if (a + b == 4)
        EXPECT_EQ(said, "(no error)") << "it is excluded";
      else
        EXPECT_THAT(said, HasSubstr(fmt::format("for a={}, b={}, c={};", a, b, c)));
    }
}

// A configuration that another restriction excludes need not be evaluated, in whatever order they stand.
TEST(Messages, NoneForWhatAnotherRestrictionExcludes) {
  EXPECT_EQ(SearchSpace::build({counted("a", 5), counted("b", 5)}, {must("a % b == 0"), must("b != 0")}).size(),
            test::brute_force({counted("a", 5), counted("b", 5)}, {must("b != 0"), must("a % b == 0")}).size());
  EXPECT_EQ(SearchSpace::build({counted("b", 5)}, {must("b == 0 or 12 % b == 0")}).size(), 5u);
  EXPECT_EQ(SearchSpace::build({counted("b", 5)}, {must("b != 0 and 8 % b == 0")}).size(), 3u);
}

}  // namespace
}  // namespace ergotune
