#include "search/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ergotune/error.hpp"
#include "ergotune/random.hpp"

namespace ergotune {
namespace {

Measurement measured(double time, double energy) {
  Measurement m;
  m.quantities["time"] = {time, 0, 10, "test", "", Provenance::measured};
  m.quantities["energy"] = {energy, 0, 10, "test", "", Provenance::measured};
  return m;
}

std::vector<Ranked> ranked(const std::string& objective, const std::vector<Measurement>& list,
                           const std::set<std::size_t>& confirmed = {}) {
  Objective parsed = Objective::parse({.text = objective}, {});
  std::vector<const Measurement*> pointers;
  for (const Measurement& m : list) pointers.push_back(&m);
  if (confirmed.empty()) return rank(parsed, pointers);
  return rank(parsed, pointers, [&](std::size_t position) { return confirmed.contains(position); });
}

std::vector<std::size_t> positions(const std::vector<Ranked>& list) {
  std::vector<std::size_t> out;
  for (const Ranked& entry : list) out.push_back(entry.position);
  return out;
}

using Positions = std::vector<std::size_t>;

TEST(Ranking, BestFirstFailuresLeftOutEqualsInTheirOrder) {
  std::vector<Measurement> list{measured(3, 1), measured(1, 9), measured(2, 5), measured(1, 2), measured(1, 0)};
  list[2].status = Status::timeout;
  const auto found = ranked("time", list);
  EXPECT_EQ(positions(found), (Positions{1, 3, 4, 0}));
  EXPECT_EQ(found[0].value, 1.0);
  EXPECT_EQ(found[3].outcome.values, std::vector<double>{3});
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{0, 3, 1}));  // an energy of 0 is none
}

// What a power limit held down keeps its numbers: the same setting gives the same clock again. But it never wins by
// that.
TEST(Ranking, OfEqualsOneThatRanAsRequestedLeads) {
  std::vector<Measurement> list{measured(1, 100), measured(1, 101), measured(1, 110), measured(1, 100.5)};
  for (Measurement& m : list) m.quantities["energy"].standard_error = 0.8;
  list[0].warnings = list[3].warnings = {"asked 1410 MHz, ran 1275 MHz, power cap"};
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{1, 0, 3, 2}));
  EXPECT_EQ(positions(ranked("energy", list, {0, 2})), (Positions{0, 3, 1, 2}))
      << "only beside what was confirmed with it";
  EXPECT_EQ(positions(ranked("energy", list, {0, 1})).front(), 1u);
  list[1].quantities["energy"].value = 104;
  EXPECT_EQ(positions(ranked("energy", list)).front(), 0u) << "what is clearly less is less";
  list[1].quantities["energy"].value = 101;
  list[0].warnings = {"power had not settled when the measurement began"};
  EXPECT_EQ(positions(ranked("energy", list)).front(), 0u);
}

TEST(Ranking, EqualsAreThoseWithinTheIntervalOfTheirDifference) {
  std::vector<Measurement> list{measured(1, 100), measured(1, 109.7)};
  list[0].quantities["energy"].standard_error = 3;
  list[1].quantities["energy"].standard_error = 4;  // 1.96 sqrt(3^2 + 4^2) = 9.8
  list[0].warnings = {"asked 1410 MHz, ran 1275 MHz, power cap"};
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{1, 0}));
  EXPECT_EQ(positions(ranked("pareto(energy, time)", list)), Positions{0}) << "a front has no leader";
  list[1].quantities["energy"].value = 109.9;
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{0, 1}));
  for (Measurement& m : list) m.quantities["energy"].degrees = 4;
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{1, 0})) << "errors that few samples tell";
  list[1].quantities["energy"] = {101, 0, 10, "test", "", Provenance::measured};
  EXPECT_EQ(positions(ranked("energy", list)), (Positions{0, 1})) << "nobody knows how exact the other is";
  for (const char* other : {"asked 1410 MHz, ran 1275 MHz", "power cap", "asked for a power cap of 200 W"}) {
    list[0].warnings = {other};
    list[1].quantities["energy"].standard_error = 4;
    EXPECT_EQ(positions(ranked("energy", list)), (Positions{0, 1})) << other;
  }
}

TEST(Ranking, RefusesAnObjectiveThatNoneHasMeasured) {
  const auto refuse = [](const std::string& text, const std::vector<Measurement>& list) {
    std::vector<const Measurement*> pointers;
    for (const Measurement& m : list) pointers.push_back(&m);
    validate_measured_quantities(Objective::parse({.text = text}, {}), pointers);
  };
  std::vector<Measurement> list{measured(1, 2), measured(1, 2)};
  list[0].quantities.erase("energy");
  EXPECT_NO_THROW(refuse("time * energy", list));
  list[1].status = Status::timeout;
  EXPECT_THROW(refuse("time * energy", list), UserError) << "what failed has measured nothing";
  EXPECT_NO_THROW(refuse("time", list));
  list[0].metrics["energy"] = 3;
  EXPECT_NO_THROW(refuse("energy", list));
  EXPECT_NO_THROW(refuse("energy", {})) << "where there is nothing, nothing is missing";
}

TEST(Ranking, ValuesReadAsTheUserWroteThem) {
  const std::vector<Measurement> list{measured(1, 4), measured(1, 9)};
  const auto found = ranked("max energy", list);
  EXPECT_EQ(positions(found), (Positions{1, 0}));
  EXPECT_EQ(found[0].value, 9.0);
  EXPECT_EQ(found[0].outcome.values, std::vector<double>{-9});
}

TEST(Ranking, AConstraintHoldsAgainstTheBestOfAllWhereverThatStands) {
  // at 40 J the first breaks its bound, which only the last one shows
  const std::vector<Measurement> list{measured(2, 10), measured(1.05, 40), measured(1.08, 30), measured(1, 50)};
  const auto found = ranked("energy subject to time <= 1.1 * best(time)", list);
  EXPECT_EQ(positions(found), (Positions{2, 1, 3, 0}));
  EXPECT_EQ(found[0].value, 30.0);
  EXPECT_GT(found[3].outcome.values[0], 50);  // what breaks the bound is worth less than all that hold it
}

TEST(Ranking, OfEqualsInWhatDecidesNoneIsDominated) {
  const std::vector<Measurement> list{measured(1.4, 5), measured(1.2, 5), measured(1.0, 9), measured(1.3, 5)};
  EXPECT_EQ(positions(ranked("lexicographic(time within 50 %, energy)", list)), (Positions{1, 3, 0, 2}));
  EXPECT_EQ(positions(ranked("energy subject to time <= 2 * best(time)", list)), (Positions{1, 3, 0, 2}));
  EXPECT_EQ(positions(ranked("energy subject to time >= 0.1", list)), (Positions{0, 3, 1, 2})) << "far from its bound";
}

TEST(Ranking, FewNoisyRepeatsMakeAProbabilityDoubtful) {
  const auto doubtful = [](double deviation, int confirmation_repeats) {
    return repeats_note({1, deviation, 3}, confirmation_repeats).find("probability") != std::string::npos;
  };
  EXPECT_TRUE(doubtful(0.6, 2));
  EXPECT_FALSE(doubtful(0.6, 8));
  EXPECT_TRUE(doubtful(1.0, 8)) << "it is that of the confirmed ones alone";
  EXPECT_FALSE(doubtful(0.1, 2)) << "they repeat well enough";
  EXPECT_FALSE(doubtful(0.6, 0)) << "there is no probability";
}

TEST(Ranking, AnUnconfirmedResultIsExpectedUnderTheLoadOfTheConfirmation) {
  const Objective time = Objective::parse({.text = "time"}, {});
  const std::vector<Measurement> before{measured(1.0, 1), measured(1.1, 1), measured(1.2, 1)};
  const std::vector<Measurement> after{measured(1.5, 1), measured(1.65, 1), measured(1.8, 1)};
  std::vector<MeasuredTwice> pairs;
  for (std::size_t i = 0; i < before.size(); ++i) pairs.emplace_back(&before[i], &after[i]);
  const Repeats repeats = repeatability_of(time, pairs);
  EXPECT_NEAR(repeats.factor, 1.5, 1e-9);
  EXPECT_NEAR(repeats.deviation, 0, 1e-9);
  EXPECT_EQ(repeats.n, 3u);
  const auto behind = unconfirmed(time, measured(1.3, 1), after[0], repeats);
  ASSERT_TRUE(behind);
  EXPECT_NEAR(behind->expected, 1.95, 1e-9);
  EXPECT_NEAR(behind->expected_gain, 0, 1e-9);
  EXPECT_NEAR(unconfirmed(time, measured(1.6, 1), after[0], repeats)->expected, 2.4, 1e-9) << "worse ones as well";
  EXPECT_NEAR(unconfirmed(time, measured(0.9, 1), after[0], repeats)->expected_gain, std::log(1 / 0.9), 1e-9);
  EXPECT_FALSE(unconfirmed(Objective::parse({.text = "pareto(time, energy)"}, {}), before[0], after[0], repeats));
  const Objective rate = Objective::parse({.text = "max energy"}, {});
  const auto rival = unconfirmed(rate, measured(1, 3), measured(1, 2), {0.5, 0.1, 3});
  ASSERT_TRUE(rival);
  EXPECT_NEAR(rival->expected, 1.5, 1e-9);
  EXPECT_LT(rival->expected_gain, 0.01);
  EXPECT_GT(unconfirmed(rate, measured(1, 3), measured(1, 2), {1, 0.1, 3})->expected_gain, 0.3);
}

// The load changed for those that use two processors: two others that repeat well do not show it.
TEST(Ranking, OfThreeRepeatsOneThatDiffersCounts) {
  const Objective time = Objective::parse({.text = "time"}, {});
  const std::vector<Measurement> before{measured(2.6, 1), measured(2.6, 1), measured(2.6, 1)};
  const std::vector<Measurement> after{measured(1.4, 1), measured(2.6, 1), measured(2.6, 1)};
  std::vector<MeasuredTwice> pairs;
  for (std::size_t i = 0; i < before.size(); ++i) pairs.emplace_back(&before[i], &after[i]);
  const Repeats repeats = repeatability_of(time, pairs);
  EXPECT_GT(unconfirmed(time, measured(2.6, 1), after[0], repeats)->expected_gain, 0.003);
  EXPECT_NE(repeats_note(repeats, 3), "");
  pairs[0].first = &after[0], pairs[0].second = &before[0];
  EXPECT_LT(unconfirmed(time, measured(2.7, 1), before[0], repeatability_of(time, pairs))->expected_gain, 0.003)
      << "a leader that was lucky";
}

TEST(Ranking, TheBestOfTheConfirmedLeads) {
  const std::vector<Measurement> list{measured(1.0, 1), measured(1.2, 1), measured(1.1, 1), measured(0.9, 1)};
  EXPECT_EQ(positions(ranked("time", list, {1, 2})), (Positions{2, 3, 0, 1}));
  EXPECT_EQ(positions(ranked("lexicographic(time within 50 %, energy)", list, {1})), (Positions{1, 3, 0, 2}));
}

TEST(Ranking, OfSeveralObjectivesTheFrontOnly) {
  const std::vector<Measurement> list{measured(3, 1), measured(2, 2), measured(2, 3),
                                      measured(1, 5), measured(2, 2), measured(4, 4)};
  EXPECT_EQ(positions(ranked("pareto(time, energy)", list)), (Positions{3, 1, 0}));
  EXPECT_EQ(positions(ranked("pareto(time, energy)", list, {0})), (Positions{3, 1, 0}));
  EXPECT_EQ(positions(ranked("pareto(energy, max time)", list)), (Positions{0, 5}));
}

TEST(Ranking, IsTheOrderOfBetter) {
  Random random(3);
  for (const char* text :
       {"time", "max time", "time * energy", "energy subject to time <= 1.5 * best(time)",
        "lexicographic(time within 20 %, energy)", "lexicographic(time within 30 %, energy within 30 %, max time)"}) {
    Objective objective = Objective::parse({.text = text}, {});
    std::vector<Measurement> list;
    for (int i = 0; i < 60; ++i)
      list.push_back(
          measured(1 + static_cast<double>(random.below(20)) / 10, 1 + static_cast<double>(random.below(5))));
    std::vector<const Measurement*> pointers;
    for (const Measurement& m : list) pointers.push_back(&m);
    const auto found = rank(objective, pointers);
    ASSERT_EQ(found.size(), list.size());
    for (std::size_t i = 1; i < found.size(); ++i) {
      const auto before = found[i - 1].position, after = found[i].position;
      EXPECT_FALSE(objective.better(list[after], list[before])) << text;
      if (!objective.better(list[before], list[after])) {
        EXPECT_LT(before, after) << text;
      }
    }
  }
}

// A search sees values that a confirmation replaces. Whoever ranks what counts must not be led by them: tune
// told another winner than show did.
TEST(Ranking, FollowsFromTheListAloneWhateverTheObjectiveWasToldBefore) {
  const std::vector<Measurement> list{measured(1.0, 9), measured(1.4, 2)};
  std::vector<const Measurement*> pointers;
  for (const Measurement& m : list) pointers.push_back(&m);
  for (const char* text : {"energy subject to time <= 1.5 * best(time)", "lexicographic(time within 50 %, energy)"}) {
    Objective fresh = Objective::parse({.text = text}, {});
    Objective led = Objective::parse({.text = text}, {});
    led.outcome(measured(0.1, 5));  // a lucky time, since confirmed to be 1.0
    const auto expected = rank(fresh, pointers), found = rank(led, pointers);
    ASSERT_EQ(expected.front().position, 1u) << text;
    EXPECT_EQ(found.front().position, 1u) << text;
    EXPECT_EQ(found.front().outcome.values, expected.front().outcome.values) << text;
  }
}

TEST(Ranking, BandsFollowEveryImprovementOfTheirLevel) {
  Objective objective = Objective::parse({.text = "lexicographic(time within 10 %, energy)"}, {});
  objective.outcome(measured(2.0, 5));
  EXPECT_EQ(objective.revision(), 0u);
  objective.outcome(measured(9.0, 1));  // far beyond the band
  objective.outcome(measured(2.1, 4));  // inside it
  EXPECT_EQ(objective.revision(), 0u);
  EXPECT_TRUE(objective.better(measured(2.1, 4), measured(2.0, 5)));
  objective.outcome(measured(1.0, 7));
  EXPECT_EQ(objective.revision(), 1u);
  EXPECT_TRUE(objective.better(measured(2.0, 5), measured(2.1, 4)));  // now both are outside, and time decides
  objective.outcome(measured(1.0, 7));                                // nothing new
  EXPECT_EQ(objective.revision(), 1u);
}

}  // namespace
}  // namespace ergotune
