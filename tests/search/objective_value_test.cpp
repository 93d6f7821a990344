// What a strategy is told of a measurement: the numbers that conditions, levels and errors give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/base/error.hpp"
#include "ergotune/search/objective.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

Measurement measured(double time, double energy, double time_error = 0, double energy_error = 0) {
  Measurement m;
  m.quantities["time"] = {time, time_error, 10, "test", "", Provenance::measured};
  m.quantities["energy"] = {energy, energy_error, 10, "test", "", Provenance::measured};
  return m;
}

Objective parse(const std::string& text, std::optional<Direction> direction = std::nullopt) {
  return Objective::parse({text, direction, {}}, {{"gflops", Expression::parse("1 / time"), "GFLOP/s"}});
}

double told(Objective& objective, double time, double energy) {
  return objective.outcome(measured(time, energy)).values.at(0);
}

TEST(ObjectiveNames, AreWithoutTheDirection) {
  for (const auto& [text, name, title] :
       {std::tuple{"max gflops", "gflops", "max gflops"},
        {" maximise \t gflops", "gflops", "max gflops"},
        {"maximize gflops", "gflops", "max gflops"},
        {"min time", "time", "time"},
        {"minimise time", "time", "time"},
        {"minimize time", "time", "time"},
        {"time", "time", "time"},
        {"time * 2", "time * 2", "time * 2"},
        {"max (time, energy)", "max (time, energy)", "max (time, energy)"},
        {"max -time", "-time", "max -time"},
        {"max gflops subject to energy < 2", "gflops subject to energy < 2",
         "max gflops subject to energy < 2"},
        {"pareto(max gflops, time)", "pareto(max gflops, time)", "pareto(max gflops, time)"},
        {"lexicographic(max gflops, time)", "lexicographic(max gflops, time)",
         "lexicographic(max gflops, time)"}}) {
    EXPECT_EQ(parse(text).name(), name);
    EXPECT_EQ(parse(text).title(), title);
  }
  EXPECT_EQ(parse("gflops", Direction::maximise).title(), "max gflops");
  EXPECT_EQ(parse("max gflops").spec().direction, Direction::maximise);
  EXPECT_EQ(parse("time").spec().direction, Direction::minimise);
  EXPECT_EQ(parse("pareto(max gflops, time)").spec().direction, std::nullopt);
}

TEST(ObjectiveNames, OfTheQuantityThatItIs) {
  EXPECT_EQ(parse("max gflops").quantity(), "gflops");
  EXPECT_EQ(parse("time").quantity(), "time");
  EXPECT_EQ(parse("2 * time").quantity(), "");
  EXPECT_EQ(parse("time * energy").quantity(), "");
  EXPECT_THAT(parse("gflops / energy").quantities(), ElementsAre("energy", "time"));
  EXPECT_THAT(parse("energy subject to gflops > 0.5 * best(gflops)").quantities(),
              ElementsAre("energy", "time"));
  EXPECT_THAT(parse("something_of_an_observer").quantities(), ElementsAre("something_of_an_observer"));
}

// (time - 1) / time is how far a time above 1 is beyond its bound, relative to the larger side.
TEST(ObjectiveConditions, CountByTheirRelativeExcess) {
  Objective objective = parse("energy subject to time <= 1");
  EXPECT_EQ(told(objective, 1, 10), 10) << "the bound itself holds";
  EXPECT_EQ(told(objective, 2, 5), 10 + 10 * 0.5) << "above the largest told";
  EXPECT_EQ(told(objective, 4, 5), 10 + 10 * 0.75);
  EXPECT_EQ(told(objective, 4, 20), 20 + 20 * 0.75);
  EXPECT_TRUE(objective.better(measured(2, 50), measured(4, 1)));
  EXPECT_TRUE(objective.better(measured(1, 9), measured(1.01, 1)));
  EXPECT_FALSE(objective.better(measured(1.01, 1), measured(1, 9)));
  EXPECT_FALSE(objective.better(measured(2, 1), measured(2, 9))) << "both as far beyond it";

  Objective two = parse("energy subject to time <= 1 and energy <= 8");
  EXPECT_EQ(told(two, 1, 4), 4);
  EXPECT_EQ(told(two, 2, 10), 10 + 10 * (0.5 + 0.2));
  Objective strict = parse("energy subject to time < 1");
  EXPECT_GT(told(strict, 1, 10), 10);
  EXPECT_NEAR(told(strict, 1, 10), 10, 1e-6);
  Objective below = parse("max energy subject to time <= 1");
  EXPECT_EQ(told(below, 1, 4), -4);
  EXPECT_EQ(told(below, 2, 4), -4 + 4 * 0.5);
}

TEST(ObjectiveConditions, ABestIsTheSmallestOrWhereItIsABoundFromBelowTheLargest) {
  Objective fast = parse("energy subject to time <= 2 * best(time)");
  told(fast, 3, 1);
  told(fast, 2, 9);
  told(fast, 8, 9);
  EXPECT_EQ(told(fast, 4, 1), 1);
  EXPECT_GT(told(fast, 4.1, 1), 9);
  Objective strong = parse("time subject to energy >= 0.5 * best(energy)");
  told(strong, 1, 8);
  told(strong, 9, 2);
  EXPECT_EQ(told(strong, 1, 4), 1);
  EXPECT_GT(told(strong, 1, 3.9), 1);
  EXPECT_EQ(strong.revision(), 0u);
  told(strong, 1, 9);
  EXPECT_EQ(strong.revision(), 1u);
  Objective relative = parse("time / best(time)");
  EXPECT_FALSE(relative.better(measured(1, 1), measured(2, 1))) << "before any is told, each is its own best";
  EXPECT_EQ(relative.value(measured(3, 1)), 1.0);
  told(relative, 2, 1);
  EXPECT_EQ(relative.value(measured(3, 1)), 1.5);
  relative.forget();
  EXPECT_EQ(relative.value(measured(3, 1)), 1.0);
}

// Inside the band of the first level, from its best to a tenth above, the last level says where in the band's
// width.
TEST(ObjectiveLevels, AreFoldedIntoTheBandOfTheFirst) {
  Objective objective = parse("lexicographic(time within 10%, energy)");
  EXPECT_NEAR(told(objective, 1, 50), 1.1 - 0.11, 1e-12);
  EXPECT_NEAR(told(objective, 1.05, 75), 1.1 - 0.11 * 0.5, 1e-12) << "half above the least energy";
  EXPECT_NEAR(told(objective, 1.1, 75), 1.1 - 0.11 * 0.5, 1e-12) << "the band's end is in it";
  EXPECT_NEAR(told(objective, 1.05, 500), 1.1, 1e-12) << "no more than the band's end";
  EXPECT_NEAR(told(objective, 1.2, 10), 1.2, 1e-12);
  EXPECT_NEAR(told(objective, 1.05, 60), 1.1 - 0.11 * 0.8, 1e-12) << "what is beyond the band is no measure";
  EXPECT_NEAR(told(objective, 1.05, 25), 1.1 - 0.11, 1e-12);
  EXPECT_NEAR(told(objective, 1, 50), 1.1, 1e-12) << "twice the least";

  Objective rate = parse("lexicographic(max energy within 10%, time)");
  EXPECT_NEAR(told(rate, 4, 10), -9 - 0.9, 1e-12);
  EXPECT_NEAR(told(rate, 6, 9.5), -9 - 0.9 * 0.5, 1e-12);
  EXPECT_NEAR(told(rate, 1, 8), -8, 1e-12);
  Objective nothing = parse("lexicographic(time - 1 within 10%, energy)");
  EXPECT_EQ(told(nothing, 1, 9), 0) << "no width";
}

TEST(ObjectiveLevels, EachDecidesAmongThoseInTheBandsBefore) {
  Objective objective = parse("lexicographic(time within 10%, energy within 50%, max time)");
  for (const auto& [time, energy] : {std::pair{1.0, 30.0}, {1.08, 10.0}, {1.05, 14.0}, {1.5, 1.0}})
    told(objective, time, energy);
  // the second band reaches to 15 J: 1.5 times the least among the fast ones
  EXPECT_TRUE(objective.better(measured(1.08, 10), measured(1.05, 14))) << "both inside, the longer time";
  EXPECT_TRUE(objective.better(measured(1.05, 14), measured(1.0, 30)));
  EXPECT_TRUE(objective.better(measured(1.0, 30), measured(1.5, 1)));
  EXPECT_TRUE(objective.better(measured(1.05, 16), measured(1.09, 17))) << "beyond the second";
  EXPECT_FALSE(objective.better(measured(1.05, 14), measured(1.05, 14)));
  const auto before = objective.revision();
  told(objective, 1.5, 0.5);
  EXPECT_EQ(objective.revision(), before) << "too slow to bound anything";
  told(objective, 1.02, 8);
  EXPECT_EQ(objective.revision(), before + 1) << "now 12 J are the end";
  EXPECT_TRUE(objective.better(measured(1.05, 11), measured(1.08, 14)));
}

// From 1 s to 1.1 s and, among those, from 4 J to 6 J: the ends belong to the bands.
TEST(ObjectiveLevels, HaveBandsThatIncludeTheirEnds) {
  Objective objective = parse("lexicographic(time within 10%, energy within 50%, max time)");
  told(objective, 1, 10);
  told(objective, 1.1, 4);
  EXPECT_EQ(objective.revision(), 1u) << "what stands at the end of the first counts in the second";
  EXPECT_TRUE(objective.better(measured(1.1, 6), measured(1, 4))) << "both inside, the longer time";
  EXPECT_TRUE(objective.better(measured(1, 4), measured(1.1, 6.5)));
  told(objective, 1.1, 4);
  EXPECT_EQ(objective.revision(), 1u) << "nothing new";
  Objective folded = parse("lexicographic(time within 10%, energy)");
  told(folded, 1, 50);
  told(folded, 1.1, 25);
  EXPECT_NEAR(told(folded, 1, 50), 1.1, 1e-12) << "twice the least, which stands at the end";
}

TEST(ObjectiveLevels, MayHaveALastOneOfZero) {
  Objective objective = parse("lexicographic(time within 10%, energy - 5)");
  EXPECT_NEAR(told(objective, 1, 5), 1.1 - 0.11, 1e-12) << "the best of its band";
  EXPECT_NEAR(told(objective, 1.05, 5), 1.1 - 0.11, 1e-12);
}

TEST(ObjectiveConditions, ThatHaveNoNumberAreAFailure) {
  for (const char* text : {"time subject to 1 / (energy - 5) < 9", "time subject to 9 > 1 / (energy - 5)", "time subject to -9 < 1 / (energy - 5)",
                           "1 / (energy - 5)", "pareto(time, 1 / (energy - 5))"}) {
    Objective objective = parse(text);
    EXPECT_FALSE(objective.outcome(measured(1, 5)).ok) << text;
    EXPECT_TRUE(objective.outcome(measured(1, 6)).ok) << text;
    EXPECT_TRUE(objective.better(measured(9, 6), measured(1, 5))) << text;
  }
}

TEST(ObjectiveConditions, ThatAreMissedByAHairCountABillionth) {
  Objective objective = parse("energy subject to time < 1");
  EXPECT_NEAR(told(objective, 1, 10), 10 * (1 + 1e-9), 1e-12);
  EXPECT_NEAR(told(objective, 1 + 1e-12, 10), 10 * (1 + 1e-9), 1e-12);
  EXPECT_NEAR(told(objective, 1 + 1e-6, 10), 10 * (1 + 1e-6), 1e-9);
}

TEST(ObjectiveConditions, ForgetWhatWasToldBefore) {
  Objective objective = parse("energy subject to time <= 1");
  told(objective, 1, 1000);
  EXPECT_EQ(told(objective, 2, 5), 1000 + 1000 * 0.5);
  objective.forget();
  EXPECT_EQ(told(objective, 2, 5), 5 + 5 * 0.5);
}

TEST(ObjectiveNames, OfConstantsInMetricsAreNoQuantities) {
  const Objective objective = Objective::parse({"rate", std::nullopt, {}}, {{"work", Expression::parse("2 * timer ** 3"), ""},
                                                                            {"rate", Expression::parse("work / time"), ""}});
  EXPECT_THAT(objective.quantities(), ElementsAre("time")) << "timer is a size of the problem";
  EXPECT_TRUE(objective.needs("time"));
  EXPECT_FALSE(objective.needs("timer"));
}

TEST(ObjectiveErrors, AreOfWhatIsTold) {
  const auto errors = [](const char* text, double time_error, double energy_error) {
    return parse(text).outcome(measured(2, 5, time_error, energy_error)).standard_errors;
  };
  EXPECT_THAT(errors("time", 0.5, 9), ElementsAre(0.5));
  EXPECT_THAT(errors("time", 0, 9), ElementsAre()) << "exact";
  EXPECT_THAT(errors("pareto(time, energy)", 0, 9), ElementsAre(0, 9));
  EXPECT_THAT(errors("pareto(time, energy)", 0, 0), ElementsAre());
  EXPECT_THAT(errors("lexicographic(time, energy)", 0.5, 9), ElementsAre(0.5));
}

TEST(ObjectiveErrors, AMissingQuantityIsAFailure) {
  Measurement without = measured(2, 5);
  without.quantities.erase("energy");
  for (const char* text : {"energy", "time * energy", "time subject to energy < 9",
                           "time subject to 9 > energy", "pareto(time, energy)", "time / best(energy)"}) {
    Objective objective = parse(text);
    EXPECT_FALSE(objective.outcome(without).ok) << text;
    EXPECT_FALSE(objective.value(without)) << text;
    EXPECT_TRUE(objective.better(measured(9, 9), without)) << text;
    EXPECT_FALSE(objective.better(without, measured(9, 9))) << text;
    EXPECT_FALSE(objective.better(without, without)) << text;
  }
  EXPECT_TRUE(parse("time").outcome(without).ok);
  Measurement broken = measured(2, std::nan(""));
  EXPECT_TRUE(parse("time").outcome(broken).ok) << "nobody asked for its energy";
  EXPECT_FALSE(parse("time subject to energy < 9").outcome(broken).ok);
}

TEST(ObjectiveErrors, TimesOfSeveralKernelsAreToldBesideTheValue) {
  Measurement mix = measured(3, 5);
  mix.quantities["time.lud"] = {2, 0, 10, "test", "", Provenance::measured};
  mix.quantities["time.pf"] = {1, 0, 10, "test", "", Provenance::measured};
  EXPECT_EQ(parse("energy").outcome(mix).kernel_times,
            (std::map<std::string, double>{{"lud", 2}, {"pf", 1}}));
}

TEST(ObjectiveCopies, AreTheirOwn) {
  Objective objective = parse("time / best(time)");
  told(objective, 4, 1);
  Objective copy = objective, assigned = parse("energy");
  assigned = objective;
  told(copy, 1, 1);
  EXPECT_EQ(objective.value(measured(4, 1)), 1.0);
  EXPECT_EQ(copy.value(measured(4, 1)), 4.0);
  EXPECT_EQ(assigned.value(measured(4, 1)), 1.0);
}

TEST(ObjectiveUnit, IsOfPowersAndOfNothingElse) {
  const auto unit = [](const char* text) { return parse(text).unit(); };
  EXPECT_EQ(unit("time ** 2"), "s s");
  EXPECT_EQ(unit("energy * time ** 2"), "J s s");
  EXPECT_EQ(unit("energy / time ** 2"), "J/(s s)");
  EXPECT_EQ(unit("1 / time"), "1/s");
  EXPECT_EQ(unit("time / time"), "");
  EXPECT_EQ(unit("time / host_time"), "");
  EXPECT_EQ(unit("energy * gflops"), "GFLOP/s J");
  EXPECT_EQ(unit("sqrt(time)"), "") << "half a unit";
  EXPECT_EQ(unit("time - 1.37"), "");
  EXPECT_EQ(unit("time - time"), "");
  EXPECT_EQ(unit("time - 2"), "");
  EXPECT_EQ(unit("time - 5 * energy"), "");
  EXPECT_EQ(unit("max(time, 2.5)"), "");
  EXPECT_EQ(unit("time * min(1, 5 - time)"), "") << "the first power at first";
  EXPECT_EQ(unit("(time - 2) * (time - 5)"), "");
  EXPECT_EQ(unit("-time"), "s");
  EXPECT_EQ(unit("0 * time"), "");
  EXPECT_EQ(unit("sqrt(2 - time) * time"), "") << "no number soon";
  EXPECT_EQ(unit("exp(time)"), "");
  EXPECT_EQ(unit("time * best(time)"), "s s");
}

}  // namespace
}  // namespace ergotune
