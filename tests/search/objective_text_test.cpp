// How the text of an objective is read, and where its faults are.
#include "search/objective_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"

namespace ergotune::search {
namespace {

using ::testing::ElementsAre;

ObjectiveText read(const std::string& text) { return parse_objective_text({text, std::nullopt, {}}); }

/// Terms as "max gflops", conditions as "a <= b"; one string each.
std::vector<std::string> parts(const std::string& text) {
  const ObjectiveText read_text = read(text);
  std::vector<std::string> list;
  for (const ObjectiveTerm& term : read_text.terms)
    list.push_back((term.direction == Direction::maximise ? "max " : "min ") + term.expression.to_string());
  for (const Comparison& comparison : read_text.conditions)
    list.push_back(comparison.left.to_string() + (comparison.strict ? " < " : " <= ") + comparison.right.to_string());
  return list;
}

/// Where in the text a fault is: 1 is its first character.
int column_of_fault(const std::string& text) {
  try {
    parse_objective_text({text, std::nullopt, {"problem.toml", 4, 1}});
  } catch (const UserError& error) {
    EXPECT_EQ(error.place().file, "problem.toml");
    EXPECT_EQ(error.place().line, 4);
    return error.place().column;
  }
  return 0;
}

TEST(ObjectiveText, ADirectionIsAWordBeforeAnExpression) {
  for (const char* text : {"max gflops", "maximise gflops", "maximize gflops", "  max   gflops "})
    EXPECT_THAT(parts(text), ElementsAre("max gflops")) << text;
  for (const char* text : {"min time", "minimise time", "minimize time", "time", "\ttime\n"})
    EXPECT_THAT(parts(text), ElementsAre("min time")) << text;
  EXPECT_THAT(parts("max(time, energy)"), ElementsAre("min max(time, energy)"));
  EXPECT_THAT(parts("max (time, energy)"), ElementsAre("min max(time, energy)"));
  EXPECT_THAT(parts("max -time"), ElementsAre("max -time"));
  EXPECT_THAT(parts("maxed"), ElementsAre("min maxed"));
  EXPECT_THAT(parts("max"), ElementsAre("min max"));
}

TEST(ObjectiveText, ADirectionGivenBesideItMustBeTheSame) {
  const auto direction = [](const char* text, Direction given) {
    return parse_objective_text({text, given, {}}).terms.front().direction;
  };
  EXPECT_EQ(direction("gflops", Direction::maximise), Direction::maximise);
  EXPECT_EQ(direction("max gflops", Direction::maximise), Direction::maximise);
  EXPECT_EQ(direction("min time", Direction::minimise), Direction::minimise);
  EXPECT_THROW(direction("max gflops", Direction::minimise), UserError);
  EXPECT_THROW(direction("min time", Direction::maximise), UserError);
}

TEST(ObjectiveText, ConditionsAreJoinedByAndAndMayBeChains) {
  EXPECT_THAT(parts("energy subject to time <= 2 and power < 300 and gflops>=5 and 1>time"),
              ElementsAre("min energy", "time <= 2", "power < 300", "5 <= gflops", "time < 1"));
  EXPECT_THAT(parts("energy subject to 1 < time <= 2"), ElementsAre("min energy", "1 < time", "time <= 2"));
  EXPECT_THAT(parts("energy subject to 3 >= time > 2 and power<9"),
              ElementsAre("min energy", "time <= 3", "2 < time", "power < 9"));
  EXPECT_THAT(parts("max gflops subject to(time+1)*2<9"), ElementsAre("max gflops", "(time + 1) * 2 < 9"));
}

TEST(ObjectiveText, WordsInsideBracketsAndOtherWordsAreNoneOfItsOwn) {
  EXPECT_THAT(parts("subjective * 2"), ElementsAre("min subjective * 2"));
  EXPECT_THAT(parts("my_subject subject to brand <= 2 and andes < 3 and land > 1"),
              ElementsAre("min my_subject", "brand <= 2", "andes < 3", "1 < land"));
  EXPECT_THAT(parts("energy subject to max(time, 2 if power < 3 and time > 1 else 4) <= 5"),
              ElementsAre("min energy", "max(time, 2 if power < 3 and time > 1 else 4) <= 5"));
  EXPECT_THAT(parts("min([time, 2 if power < 3 and time > 1 else 4])"),
              ElementsAre("min min([time, 2 if power < 3 and time > 1 else 4])"));
  EXPECT_THAT(parts("energy subject to max([time, 3 if power < 2 and time > 1 else 4]) < 5 and time < 2"),
              ElementsAre("min energy", "max([time, 3 if power < 2 and time > 1 else 4]) < 5", "time < 2"));
}

TEST(ObjectiveText, ListsSplitAtTheirOwnCommas) {
  EXPECT_THAT(parts("pareto(time, max gflops)"), ElementsAre("min time", "max gflops"));
  EXPECT_THAT(parts("pareto (min(time, 2),max([1, energy]), max power)"),
              ElementsAre("min min(time, 2)", "min max([1, energy])", "max power"));
  EXPECT_THAT(parts("pareto((time + 1) * 2, (energy))"), ElementsAre("min (time + 1) * 2", "min energy"));
  EXPECT_THAT(parts("(time + 1) * 2 subject to energy < 2"), ElementsAre("min (time + 1) * 2", "energy < 2"));
  EXPECT_EQ(read("pareto(time, energy)").form, ObjectiveText::Form::pareto);
  EXPECT_EQ(read("lexicographic(time, energy)").form, ObjectiveText::Form::lexicographic);
  EXPECT_EQ(read("paretofront").form, ObjectiveText::Form::single);
}

TEST(ObjectiveText, TolerancesAreSharesOrPercents) {
  const auto tolerances = [](const std::string& text) {
    std::vector<double> list;
    for (const ObjectiveTerm& term : read(text).terms) list.push_back(term.tolerance);
    return list;
  };
  EXPECT_THAT(tolerances("lexicographic(time within 5%, energy within 0.25, power, gflops within 0)"),
              ElementsAre(0.05, 0.25, 0.01, 0.0));
  EXPECT_THAT(tolerances("lexicographic(max gflops within 12.5 %, time)"), ElementsAre(0.125, 0.01));
  EXPECT_THAT(parts("lexicographic(max gflops within 12.5 %, time)"), ElementsAre("max gflops", "min time"));
  for (const char* wrong : {"", "%", "x", "5 5", "-1", "5%%", "1e", "0.05x"})
    EXPECT_THROW(read(fmt::format("lexicographic(time within {}, energy)", wrong)), UserError) << wrong;
}

TEST(ObjectiveText, FaultsAreShownWhereTheyAre) {
  EXPECT_EQ(column_of_fault("  "), 1);
  EXPECT_EQ(column_of_fault("time *"), 7) << "after the end";
  EXPECT_EQ(column_of_fault("time + $"), 8);
  EXPECT_EQ(column_of_fault("  time + $"), 10);
  EXPECT_EQ(column_of_fault("max time + $"), 12);
  EXPECT_EQ(column_of_fault("best(time) + $"), 14) << "best() keeps its length";
  EXPECT_EQ(column_of_fault("best( time ) + best (energy) + $"), 32);
  EXPECT_EQ(column_of_fault("time + best(2 * time)"), 8);
  EXPECT_EQ(column_of_fault("time + best(time"), 8);
  EXPECT_EQ(column_of_fault("energy subject time < 2"), 16);
  EXPECT_EQ(column_of_fault("energy subject tone < 2"), 16);
  EXPECT_EQ(column_of_fault("energy subject to"), 18);
  EXPECT_EQ(column_of_fault("energy subject to time"), 19);
  EXPECT_EQ(column_of_fault("energy subject to time == 2"), 24);
  EXPECT_EQ(column_of_fault("energy subject to time < 2 and power != 3"), 38);
  EXPECT_EQ(column_of_fault("energy subject to time < 2 and power < $"), 40);
  EXPECT_EQ(column_of_fault("energy subject to time < 2 <= $"), 31);
  EXPECT_EQ(column_of_fault("energy subject to time < 2 and < 3"), 32);
  EXPECT_EQ(column_of_fault("energy subject to $ < time"), 19);
  EXPECT_EQ(column_of_fault("energy subject to $ > time"), 19);
  EXPECT_EQ(column_of_fault("pareto( time )"), 9);
  EXPECT_EQ(column_of_fault("pareto(time, $)"), 14);
  EXPECT_EQ(column_of_fault("pareto(time, )"), 13);
  EXPECT_EQ(column_of_fault("time within 5%"), 6);
  EXPECT_EQ(column_of_fault("pareto(max time within 5%, energy)"), 17);
  EXPECT_EQ(column_of_fault("lexicographic(time within 5x, energy)"), 27);
  EXPECT_EQ(column_of_fault("lexicographic(time + $ within 5, energy)"), 22);
  EXPECT_EQ(column_of_fault("lexicographic(max time, max $)"), 29);
  try {
    parse_objective_text({"pareto(time)", std::nullopt, {"problem.toml", 4, 0}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.place().column, 0) << "whoever does not know the column is told none";
  }
}

}  // namespace
}  // namespace ergotune::search
