// A search for least energy measures the times of many configurations and the energy of few.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ergotune/problem.hpp"
#include "temporary_folder.hpp"
#include "tune/fake_evaluator.hpp"
#include "tune/ledger/energy_by_time.hpp"
#include "tune/ledger/energy_choice.hpp"
#include "tune/scheduled_evaluator.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

using test::FakeEvaluator;
using test::timed;

std::vector<Parameter> parameters() {
  std::vector<Parameter> list(2);
  list[0].name = "x";
  list[1].name = "y";
  for (int i = 1; i <= 20; ++i)
    for (Parameter& parameter : list) parameter.values.emplace_back(i);
  return list;
}

double time_of(const Configuration& c) {
  const double x = c[0].as_real() - 13, y = c[1].as_real() - 6;
  return 1e-3 * (1 + 0.03 * x * x + 0.02 * y * y);
}

/// Least at another configuration than the time, and less by far at none that is slow.
double energy_of(const Configuration& c) {
  const double time = time_of(c);
  return 300 * time * std::pow(time / 1e-3, -0.3) * (1 + 0.02 * std::sin(5 * c[0].as_real() + 3 * c[1].as_real()));
}

class Screening : public ::testing::Test {
 protected:
  Screening() : space(SearchSpace::build(parameters(), {})) {
    evaluator.measure = [this](const Configuration& c, int) {
      Measurement m = timed(time_of(c), 1e-4 * time_of(c));
      if (time_of(c) > evaluator.energy_up_to) return m;
      m.quantities["energy"] = {energy_of(c), 1e-4 * energy_of(c), 9, "fake", "", Provenance::measured};
      ++energies[c];
      return m;
    };
  }

  SessionResult run(Store* store = nullptr, std::int64_t session = 0) {
    ObjectiveSpec spec;
    spec.text = "energy";
    Objective objective = Objective::parse(spec, {});
    return run_session(space, objective, evaluator, store, session, options);
  }

  SearchSpace space;
  FakeEvaluator evaluator;
  SessionOptions options;
  std::map<Configuration, int> energies;  ///< how often each was measured
};

TEST_F(Screening, FindsTheLeastEnergyAndMeasuresItForFew) {
  double least = 1e300;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) least = std::min(least, energy_of(space.configuration(i)));
  for (const bool budget : {false, true}) {
    energies.clear();
    options.budget.evaluations = budget ? 150 : 0;
    const SessionResult result = run();
    ASSERT_FALSE(result.best.empty());
    const Measurement& best = result.best.front().measurement;
    EXPECT_NEAR(*best.value("energy"), least, 0.005 * least);
    EXPECT_EQ(best.quantities.at("energy").provenance, Provenance::measured);
    EXPECT_LT(energies.size(), result.evaluated / 2);
    for (const ConfigurationResult& entry : result.best) EXPECT_TRUE(entry.measurement.value("energy"));
  }
}

// The fastest of all is among those whose energy is measured, however few there is time for.
TEST_F(Screening, TheBestHasNoMoreEnergyThanTheFastest) {
  options.budget.evaluations = 30;
  const SessionResult result = run();
  const ConfigurationIndex best = result.best.front().index;
  Configuration fastest = space.configuration(best);
  for (const auto& [index, times] : evaluator.measured)
    if (time_of(space.configuration(index)) < time_of(fastest)) fastest = space.configuration(index);
  EXPECT_TRUE(energies.contains(fastest));
  EXPECT_LE(energy_of(space.configuration(best)), energy_of(fastest));
}

// However many are faster here.
TEST_F(Screening, TheEnergyOfTheBestOfAnEarlierSearchIsMeasured) {
  const ConfigurationIndex fastest_there = *space.index_of({Value(10), Value(8)});
  PriorResults prior{"by time", {}};
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {i == fastest_there ? 1e-4 : time_of(space.configuration(i))};
    prior.outcomes.emplace_back(i, outcome);
  }
  options.priors = {prior};
  options.budget.evaluations = 60;
  options.confirm = false;
  run();
  EXPECT_TRUE(energies.contains(space.configuration(fastest_there)));
}

// What an earlier search found to be fast is timed here as well, though it is not fast here.
TEST_F(Screening, TimesTheBestOfAnEarlierSearch) {
  PriorResults prior{"by time", {}};
  std::vector<ConfigurationIndex> best;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {time_of(space.configuration(i))};
    if (i % 67 == 5) {
      outcome.values.front() *= 1e-2;
      best.push_back(i);
    }
    prior.outcomes.emplace_back(i, outcome);
  }
  options.priors = {prior};
  options.budget.evaluations = 40;
  options.confirm = false;
  run();
  for (const ConfigurationIndex index : best) EXPECT_TRUE(evaluator.measured.contains(index)) << index;
}

// Of equal times, the power of what was measured says which parameter's values need less energy.
TEST(EnergyChoice, PrefersWhatNeedsLessPower) {
  const SearchSpace space = SearchSpace::build(parameters(), {});
  const auto timed = [&](int x, int y, double energy) {
    return TimedConfiguration{*space.index_of({Value(x), Value(y)}), 1e-3, energy};
  };
  const std::vector<TimedConfiguration> measured{timed(3, 4, 0.30), timed(3, 17, 0.33), timed(16, 5, 0.301),
                                                 timed(17, 16, 0.331)};
  const std::vector<TimedConfiguration> candidates{timed(9, 18, 0), timed(10, 16, 0), timed(10, 3, 0), timed(9, 20, 0)};
  EXPECT_EQ(by_expected_improvement(space, measured, candidates).front(), candidates[2].index);
}

// 15 compile workers and one device: within 10 s, preparation included, at most the energy of what a search by time
// finds in 6 s, whether or not everything is compiled already.
TEST(ScreeningInTime, NeedsNoMoreEnergyThanTheFastestOfASearchByTime) {
  std::vector<Parameter> list = parameters();
  list.emplace_back().name = "z";
  for (int i = 0; i < 8; ++i) list[2].values.emplace_back(i);
  const SearchSpace space = SearchSpace::build(list, {});
  const auto time = [](const Configuration& c) {
    const double x = c[0].as_real(), y = c[1].as_real(), z = c[2].as_real();
    return time_of(c) * (1 + 0.1 * (z - 5) * (z - 5) + 0.25 * std::sin(2 * x + 3 * z) * std::sin(5 * y + z));
  };
  const auto energy = [&](const Configuration& c) {
    return 0.3 * std::pow(time(c) / 1e-3, 0.7) * (1 + 0.02 * std::sin(5 * c[0].as_real() + 3 * c[1].as_real()));
  };
  for (const double compile_seconds : {0.8, 0.0}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const auto winner = [&](const char* quantity, double seconds) {
        test::ScheduledEvaluator evaluator(15);
        evaluator.compile_seconds = compile_seconds;
        evaluator.measure = [&](const Configuration& c) {
          Measurement m = timed(time(c), 1e-3 * time(c));
          if (quantity == std::string("energy"))
            m.quantities["energy"] = {energy(c), 2e-3 * energy(c), 9, "fake", "", Provenance::measured};
          return m;
        };
        SessionOptions options;
        options.seed = seed;
        options.budget.seconds = seconds;
        options.spent_seconds = 1.5;
        ObjectiveSpec spec;
        spec.text = quantity;
        Objective objective = Objective::parse(spec, {});
        const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
        EXPECT_LE(options.spent_seconds + evaluator.now(), seconds);
        return space.configuration(result.best.at(0).index);
      };
      EXPECT_LE(energy(winner("energy", 10)), energy(winner("time", 6))) << compile_seconds << " " << seed;
    }
  }
}

// Each takes 0.3 s, for example because of its outputs: more is compiled ahead than there is time for.
TEST(ScreeningInTime, MeasuresEnergiesWhateverWaits) {
  const SearchSpace space = SearchSpace::build(parameters(), {});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    test::ScheduledEvaluator evaluator(15);
    evaluator.time_seconds = 0.3;
    evaluator.measure = [](const Configuration& c) {
      Measurement m = timed(time_of(c), 1e-3 * time_of(c));
      m.quantities["energy"] = {energy_of(c), 2e-3 * energy_of(c), 9, "fake", "", Provenance::measured};
      return m;
    };
    SessionOptions options;
    options.seed = seed;
    options.budget.seconds = 8;
    options.spent_seconds = 2;
    ObjectiveSpec spec;
    spec.text = "energy";
    Objective objective = Objective::parse(spec, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    const auto energy = [&](ConfigurationIndex index) { return energy_of(space.configuration(index)); };
    EXPECT_LT(energy(result.best.at(0).index), 0.5 * energy(*space.default_configuration())) << seed;
  }
}

// In fifteen seconds as well: single energies are lower by chance, that of the best of an earlier search is not.
TEST(ScreeningInTime, ComparesTheBestWithThatOfAnEarlierSearch) {
  const SearchSpace space = SearchSpace::build(parameters(), {});
  const ConfigurationIndex incumbent = *space.index_of({Value(13), Value(7)});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::map<Configuration, int> measured;
    test::ScheduledEvaluator evaluator(15);
    evaluator.energy_seconds = 0.45;
    evaluator.measure = [&](const Configuration& c) {
      Measurement m = timed(time_of(c), 1e-3 * time_of(c));
      const bool known = space.index_of(c) == incumbent, lucky = measured[c]++ < 2;  // its time, its energy
      const double energy = 0.3 * std::pow(time_of(c) / 1e-3, 0.3) * (known ? 1 : lucky ? 0.97 : 1.05);
      m.quantities["energy"] = {energy, 1e-2 * energy, 9, "fake", "", Provenance::measured};
      return m;
    };
    PriorResults prior{"by time", {}};
    for (ConfigurationIndex i = 0; i < space.size(); ++i) {
      Outcome outcome;
      outcome.ok = true;
      outcome.values = {i == incumbent ? 1e-4 : time_of(space.configuration(i))};
      prior.outcomes.emplace_back(i, outcome);
    }
    SessionOptions options;
    options.priors = {prior};
    options.seed = seed;
    options.budget.seconds = 15;
    options.spent_seconds = 2;
    ObjectiveSpec spec;
    spec.text = "energy";
    Objective objective = Objective::parse(spec, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    EXPECT_GE(result.confirmation_repeats, 2) << seed;
    EXPECT_EQ(result.best.at(0).index, incumbent) << seed;
    EXPECT_LE(options.spent_seconds + evaluator.now(), 15) << seed;
  }
}

// Whatever the budget is.
TEST_F(Screening, OneEnergyIsMeasuredInAnyCase) {
  options.budget.seconds = 1e-9;
  EXPECT_TRUE(run().best.at(0).measurement.value("energy"));
}

// The shortest launches do the fewest steps, each of which takes the longest.
TEST_F(Screening, MeasuresFirstTheEnergyOfWhatIsBestByTheMetric) {
  const auto time_of_step = [](const Configuration& c) {
    return 1e-3 * (2 - 0.05 * c[0].as_real() + 0.01 * c[1].as_real());
  };
  std::set<Configuration> seen;
  std::vector<Configuration> chosen, best_then;  // for their energy, when their times were known; the best known then
  evaluator.measure = [&](const Configuration& c, int) {
    const double time = c[0].as_real() * time_of_step(c);
    Measurement m = timed(time, 1e-6);
    const bool known = !seen.insert(c).second;
    if (time > evaluator.energy_up_to) return m;
    m.quantities["energy"] = {300 * time, 1e-4, 9, "fake", "", Provenance::measured};
    if (known) {
      chosen.push_back(c);
      best_then.push_back(*std::ranges::min_element(
          seen, [&](const Configuration& a, const Configuration& b) { return time_of_step(a) < time_of_step(b); }));
    }
    return m;
  };
  Problem problem;
  problem.parameters = parameters();
  problem.metrics = {{"steps_per_joule", Expression::parse("x / energy"), ""}};
  options.problem = &problem;
  options.confirm = false;
  options.budget.evaluations = 60;
  ObjectiveSpec spec;
  spec.text = "max steps_per_joule";
  Objective objective = Objective::parse(spec, problem.metrics);
  run_session(space, objective, evaluator, nullptr, 0, options);
  ASSERT_GT(chosen.size(), 1u);  // the default is the first
  EXPECT_EQ(chosen[1], best_then[1]);
}

TEST_F(Screening, OtherStrategiesMeasureTheEnergyOfAll) {
  options.strategy = "random";
  options.budget.evaluations = 20;
  const SessionResult result = run();
  EXPECT_EQ(energies.size(), result.evaluated);
}

TEST_F(Screening, WhatWasScreenedHasItsEnergyMeasuredWhereAnotherSearchWantsIt) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "results.db");
  SessionKey identity;
  identity.problem = "p";
  const std::int64_t id = store.session(identity, {"x", "y"}, "energy", "{}", "{}");
  options.confirm = false;
  options.budget.evaluations = 100;
  run(&store, id);
  const auto before = energies;
  EXPECT_LT(before.size(), 100u);
  const SessionResult again = run(&store, id);
  EXPECT_EQ(again.evaluated, 0u) << "the same search goes on where it was";
  EXPECT_EQ(energies, before);
  options.strategy = "brute_force";
  options.budget.evaluations = 0;
  run(&store, id);
  EXPECT_EQ(energies.size(), space.size());
  for (const auto& [configuration, times] : energies) EXPECT_EQ(times, 1) << "nothing is measured twice";
  EXPECT_EQ(run(&store, id).evaluated, 0u);
}

TEST(EnergyByTime, LearnsThePowerAndInvertsItsGuess) {
  EnergyByTime model;
  EXPECT_TRUE(model.empty());
  for (int i = 1; i <= 20; ++i) {
    Measurement m = timed(1e-3 * i);
    m.quantities["energy"].value = 0.2 * std::pow(i, 0.6);
    model.add(m);
  }
  const auto guess = model.at(2.5e-3);
  EXPECT_NEAR(guess.energy, 0.2 * std::pow(2.5, 0.6), 0.03);
  EXPECT_NEAR(model.at(model.longest(0.5)).least(), 0.5, 1e-9);
}

}  // namespace
}  // namespace ergotune
