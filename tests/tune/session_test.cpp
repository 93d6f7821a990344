#include "tune/session/session.hpp"
#include "ergotune/problem.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "temporary_folder.hpp"
#include "tune/fake_evaluator.hpp"
#include "tune/ledger/strategy_source.hpp"

namespace ergotune {
namespace {

using test::failed;
using test::FakeEvaluator;
using test::timed;
using ::testing::HasSubstr;

SearchSpace make_space(int x = 6, int y = 5) {
  std::vector<Parameter> parameters(2);
  parameters[0].name = "x";
  for (int i = 1; i <= x; ++i) parameters[0].values.emplace_back(i);
  parameters[0].default_value.emplace(2);
  parameters[1].name = "y";
  for (int i = 1; i <= y; ++i) parameters[1].values.emplace_back(i);
  return SearchSpace::build(parameters, {});
}

Configuration at(int x, int y) {
  Configuration configuration;
  configuration.emplace_back(x);
  configuration.emplace_back(y);
  return configuration;
}

/// Best at x = 3, y = 1.
Measurement bowl(const Configuration& c, int) {
  const double x = c[0].as_real() - 3, y = c[1].as_real() - 1;
  return timed(1e-3 * (1 + x * x + y * y), 1e-6);
}

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : space(make_space()), objective(Objective::parse({}, {})) {
    evaluator.measure = bowl;
    options.strategy = "random";
  }

  SessionResult run(Store* store = nullptr, std::int64_t session = 0) {
    Objective fresh = Objective::parse({}, {});
    return run_session(space, fresh, evaluator, store, session, options);
  }
  Store open_store() { return Store::open(folder / "results.db"); }
  std::int64_t session_of(Store& store) {
    SessionKey identity;
    identity.problem = "p";
    return store.session(identity, {"x", "y"}, "time", "{}", "{}");
  }

  SearchSpace space;
  Objective objective;
  FakeEvaluator evaluator;
  SessionOptions options;
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
};

TEST_F(SessionTest, TheDefaultIsMeasuredFirst) {
  options.budget.evaluations = 4;
  run();
  ASSERT_FALSE(evaluator.requests.empty());
  EXPECT_EQ(evaluator.requests[0].configuration, at(2, 1));
}

TEST_F(SessionTest, EvaluationBudgetIsExactWhateverTheCapacity) {
  for (const std::size_t capacity : {1u, 3u, 16u}) {
    evaluator = FakeEvaluator();
    evaluator.measure = bowl;
    evaluator.capacity_value = capacity;
    options.budget.evaluations = 7;
    options.confirm = false;
    const SessionResult result = run();
    EXPECT_EQ(result.evaluated, 7u);
    EXPECT_EQ(evaluator.results, 7u);
    EXPECT_EQ(result.stopped_because, "the budget of 7 evaluations is spent");
  }
}

TEST_F(SessionTest, AConstraintRelativeToTheBestIsJudgedAgainWhenTheBestMoves) {
  // The slower, the less energy: whatever was allowed while little was known leads until it is judged again.
  evaluator.measure = [](const Configuration& c, int) {
    Measurement m = bowl(c, 0);
    Quantity energy;
    energy.value = 1 - m.quantities.at("time").value;
    m.quantities["energy"] = energy;
    return m;
  };
  options.confirm = false;
  int moved = 0;
  std::vector<std::pair<double, double>> seen;  // time and energy, as they came
  options.progress = [&](const SessionProgress& progress) {
    if (!progress.last) return;
    const Measurement& m = progress.last->measurement;
    if (seen.empty() || m.value("time") < std::ranges::min_element(seen)->first) ++moved;
    seen.emplace_back(m.value("time").value(), m.value("energy").value());
    const double bound = 1.5 * std::ranges::min_element(seen)->first;
    double least = 1e9;
    for (const auto& [time, energy] : seen)
      if (time <= bound) least = std::min(least, energy);
    ASSERT_TRUE(progress.best);
    EXPECT_DOUBLE_EQ(*progress.best, least) << "after " << seen.size();
  };
  Objective constrained = Objective::parse({.text = "energy subject to time <= 1.5 * best(time)"}, {});
  const SessionResult result = run_session(space, constrained, evaluator, nullptr, 0, options);
  EXPECT_EQ(seen.size(), 30u);
  EXPECT_GT(moved, 1);  // else nothing was to be judged again
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(space.configuration(result.best[0].index), at(3, 1));  // the next would take twice as long
}

TEST_F(SessionTest, FailuresAreTriedAgainFirstAndWithinTheBudget) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  options.confirm = false;
  evaluator.measure = [](const Configuration& c, int time) {
    if (c[0] == Value(4) && time == 0) return failed(Status::timeout, "busy machine");
    if (c[0] == Value(5)) return failed(Status::compile_error, "no");
    return bowl(c, time);
  };
  run(&store, id);
  evaluator.requests.clear();
  options.retry = {Status::timeout, Status::not_converged};
  options.budget.evaluations = 28;  // 25 are known
  const SessionResult again = run(&store, id);
  EXPECT_EQ(again.resumed, 25u);
  EXPECT_EQ(again.retried, 3u);
  ASSERT_EQ(evaluator.requests.size(), 3u);
  for (const auto& request : evaluator.requests) EXPECT_EQ(request.configuration[0], Value(4));
  options.budget.evaluations = 0;
  EXPECT_EQ(run(&store, id).retried, 2u);
  options.retry.clear();
  const SessionResult last = run(&store, id);
  EXPECT_EQ(last.evaluated, 0u);
  EXPECT_EQ(store.rows(id).size(), 35u);
  EXPECT_EQ(store.results(id).size(), 30u);
}

TEST_F(SessionTest, TheCulpritOfADeadSessionIsNotMetTwice) {
  const Configuration culprit = at(4, 4);
  for (int death = 0; death < 2; ++death) {
    Store store = open_store();
    const std::int64_t id = session_of(store);
    EXPECT_TRUE(store.note_deaths(id).empty());
    store.record_start(id, culprit);
  }
  Store store = open_store();
  const std::int64_t id = session_of(store);
  options.confirm = false;
  run(&store, id);
  EXPECT_EQ(evaluator.measured.count(*space.index_of(culprit)), 0u);
  const std::vector<StoredRow> rows = store.results(id);
  EXPECT_EQ(std::ranges::count_if(rows,
                                  [&](const StoredRow& row) {
                                    return row.configuration == culprit &&
                                           row.measurement.status == Status::runtime_error;
                                  }),
            1);
  EXPECT_TRUE(store.unfinished(id).empty());
}

TEST_F(SessionTest, WhatRanWhenTheSessionWasKilledOnceHasASecondChance) {
  const Configuration unlucky = at(3, 1);
  {
    Store store = open_store();
    store.record_start(session_of(store), unlucky);
  }
  Store store = open_store();
  const std::int64_t id = session_of(store);
  options.confirm = false;
  const SessionResult result = run(&store, id);
  EXPECT_EQ(evaluator.measured.count(*space.index_of(unlucky)), 1u);
  EXPECT_EQ(space.configuration(result.best.front().index), unlucky);
  EXPECT_TRUE(store.note_deaths(id).empty()) << "it has ended well";
}

TEST_F(SessionTest, WhatOnlyTheCompilerIsRequestedIsNoRowAndNoCulprit) {
  struct Asks : Source {
    std::vector<ConfigurationRequest> left{2};
    std::vector<Measurement> taken;
    std::vector<ConfigurationRequest> next(std::size_t) override { return std::exchange(left, {}); }
    void take(const ConfigurationRequest&, const Measurement& measurement, bool) override {
      taken.push_back(measurement);
    }
  } asks;
  asks.left[0].resources_of = at(3, 1);
  asks.left[1].resources_of = at(4, 4);
  Store store = open_store();
  const std::int64_t id = session_of(store);
  LedgerOptions kept;
  kept.store = &store;
  kept.session = id;
  Ledger ledger(space, evaluator, kept);
  evaluator.before_result = [&](std::size_t) { EXPECT_TRUE(store.unfinished(id).empty()); };
  EXPECT_EQ(ledger.drive(asks), "");
  EXPECT_EQ(asks.taken.size(), 2u);
  for (const EvaluationRequest& request : evaluator.requests) EXPECT_TRUE(request.resources_only);
  EXPECT_TRUE(store.rows(id).empty());
  EXPECT_EQ(ledger.find(*space.index_of(at(3, 1))), nullptr);
  // The same ledger's next is measured, noted and kept as ever.
  evaluator.before_result = [&](std::size_t) { EXPECT_EQ(store.unfinished(id).size(), 1u); };
  ListSource measured({*space.index_of(at(3, 1))});
  ledger.drive(measured);
  EXPECT_EQ(store.rows(id).size(), 1u);
}

TEST_F(SessionTest, EveryConfigurationIsWrittenDownBeforeItRuns) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  options.confirm = false;
  options.budget.evaluations = 5;
  const std::filesystem::path file = folder / "results.db";
  evaluator.before_result = [&](std::size_t) {
    const Store other = Store::open(file, true);
    EXPECT_EQ(other.unfinished(id).size(), 1u);
  };
  run(&store, id);
  EXPECT_TRUE(store.unfinished(id).empty());
}

// B4: a disturbance is a condition of the device, not a property of the configuration that met it.
TEST_F(SessionTest, WhatWasDisturbedIsTriedAgainAtTheEndAndNeverStored) {
  evaluator.disturbed = [](const Configuration& c, int time) { return c == at(3, 1) && time == 0; };
  options.confirm = false;
  {
    Store store = open_store();
    const SessionResult result = run(&store, session_of(store));
    EXPECT_EQ(space.configuration(result.best.front().index), at(3, 1));
    EXPECT_EQ(evaluator.requests.back().configuration, at(3, 1)) << "at the end, when the disturbance may be over";
    EXPECT_EQ(result.disturbed, 0u);
  }
  evaluator.measured.clear();
  std::filesystem::remove(folder / "results.db");
  evaluator.disturbed = [](const Configuration& c, int) { return c == at(3, 1); };
  {
    Store store = open_store();
    const SessionResult result = run(&store, session_of(store));
    EXPECT_EQ(result.disturbed, 1u);
    EXPECT_EQ(evaluator.measured[*space.index_of(at(3, 1))], 2);
    EXPECT_EQ(store.rows(session_of(store)).size(), space.size() - 1);
  }
  evaluator.measured.clear();
  evaluator.disturbed = {};
  Store store = open_store();
  const SessionResult again = run(&store, session_of(store));
  EXPECT_EQ(again.evaluated, 1u) << "the same command measures what has no result";
  EXPECT_EQ(space.configuration(again.best.front().index), at(3, 1));
}

// B1: what fails while it is confirmed is not confirmed; what the search measured stays.
TEST_F(SessionTest, AConfirmationThatFailsTakesNothingFromTheSearch) {
  evaluator.measure = [](const Configuration& c, int time) {
    return time == 0 ? bowl(c, time) : failed(Status::launch_error, "the device is in use");
  };
  Store store = open_store();
  const std::int64_t session = session_of(store);
  const SessionResult result = run(&store, session);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(space.configuration(result.best.front().index), at(3, 1));
  EXPECT_EQ(result.confirmation_repeats, 0);
  EXPECT_FALSE(result.probability_best);
  EXPECT_EQ(result.best.front().measurement.warnings.size(), 1u) << "why it is not confirmed";
  for (const StoredRow& row : store.results(session)) EXPECT_TRUE(usable(row.measurement.status));
  EXPECT_EQ(evaluator.measured[*space.index_of(at(3, 1))], 3) << "two rounds, once";
}

TEST_F(SessionTest, AWrongResultInTheConfirmationCounts) {
  evaluator.measure = [](const Configuration& c, int time) {
    return time == 0 || c != at(3, 1) ? bowl(c, time) : failed(Status::wrong_result, "another value");
  };
  const SessionResult result = run();
  EXPECT_NE(space.configuration(result.best.front().index), at(3, 1));
}

TEST_F(SessionTest, TimeBudgetEnds) {
  options.budget.seconds = 0.05;
  options.confirm = false;
  evaluator.before_result = [](std::size_t) { ::usleep(10'000); };
  const SessionResult result = run();
  EXPECT_LT(result.evaluated, 30u);
  EXPECT_EQ(result.stopped_because, "the time budget of 0.05 s is spent");
}

TEST_F(SessionTest, ATimeBudgetThatPreparingSpentLeavesOneAnswer) {
  options.budget.seconds = 1e-6;
  const SessionResult result = run();
  EXPECT_FALSE(result.best.empty());
  EXPECT_LT(result.evaluated, 30u);
}

TEST_F(SessionTest, EnergyBudgetCountsWhatWasSpent) {
  evaluator.measure = [](const Configuration&, int) {
    Measurement m = timed(1e-3);
    m.quantities["energy"] = {0.1, 0, 1, "", "", Provenance::measured};  // 100 W
    m.measure_seconds = 0.5;                                             // 50 J each
    return m;
  };
  options.budget.joules = 220;
  options.confirm = false;
  EXPECT_EQ(run().evaluated, 5u);
}

TEST_F(SessionTest, ABudgetOfEvaluationsIncludesTheConfirmation) {
  for (const std::uint64_t budget : {18u, 24u, 28u}) {
    evaluator = FakeEvaluator();
    evaluator.measure = bowl;
    options.budget.evaluations = budget;
    const SessionResult result = run();
    EXPECT_LE(evaluator.results, budget);
    EXPECT_GE(result.evaluated, budget - std::max<std::uint64_t>(6, budget / 4)) << "the search has its share";
    EXPECT_GE(result.confirmation_repeats, 2);
    EXPECT_GE(evaluator.measured.at(*space.index_of(at(2, 1))), 3) << "the gain over the default is of repeats too";
  }
}

TEST_F(SessionTest, TheSameBudgetOnAFinishedSessionMeasuresNothing) {
  space = make_space(20, 20);
  for (const double noise : {0.0, 0.02, 0.3}) {
    Store store = Store::open(folder / std::to_string(noise));
    const std::int64_t id = session_of(store);
    evaluator = FakeEvaluator();
    evaluator.measure = [noise, random = Random(1)](const Configuration& c, int time) mutable {
      Measurement m = bowl(c, time);
      Quantity& q = m.quantities.at("time");
      q.value *= 1 + noise * random.uniform();
      q.standard_error = noise * q.value;
      return m;
    };
    options.budget.evaluations = 60;
    const SessionResult first = run(&store, id);
    EXPECT_GT(first.confirmation_repeats, 0);
    evaluator.results = 0;
    for (int again = 0; again < 2; ++again) EXPECT_EQ(run(&store, id).evaluated, 0u) << noise;
    EXPECT_EQ(evaluator.results, 0u) << noise;
    options.budget.evaluations = 120;
    EXPECT_GT(run(&store, id).evaluated, 30u) << "a larger one goes on";
  }
}

// What the search leaves is used, beyond the share that is kept.
TEST_F(SessionTest, AConfirmationHasWhatTheSearchLeaves) {
  options.budget.evaluations = 200;  // of 30 configurations
  EXPECT_GE(run().confirmation_repeats, 3);
}

TEST_F(SessionTest, ABudgetTooSmallToCompareIsTheSearchs) {
  options.budget.evaluations = 6;
  const SessionResult result = run();
  EXPECT_EQ(result.evaluated, 6u);
  EXPECT_EQ(evaluator.results, 6u);
  EXPECT_EQ(result.confirmation_repeats, 0);
}

// By the times that measurements take on this evaluator's own account: no clock of the machine decides.
TEST_F(SessionTest, ABudgetOfEnergyIncludesTheConfirmation) {
  std::size_t repeats = 0;
  evaluator.measure = [&](const Configuration& c, int time) {
    Measurement m = bowl(c, time);
    repeats += time > 0;
    m.quantities["energy"] = {100 * *m.value("time"), 0, 1, "", "", Provenance::measured};  // 100 W
    m.measure_seconds = 0.5;                                                                // 50 J each
    return m;
  };
  options.budget.joules = 1000;
  const SessionResult result = run();
  EXPECT_LE(evaluator.results, 20u);
  EXPECT_GE(result.evaluated, 14u);
  EXPECT_GE(result.confirmation_repeats, 2);
}

TEST_F(SessionTest, ABudgetOfTimeIncludesTheConfirmation) {
  space = make_space(100, 100);  // more than it can search
  evaluator.measure = [](const Configuration& c, int time) {
    Measurement m = bowl(c, time);
    m.measure_seconds = 0.02;
    return m;
  };
  evaluator.before_result = [](std::size_t) { ::usleep(20'000); };
  options.budget.seconds = 2;
  const double share = StrategySource::Kept().share;
  const SessionResult result = run();
  EXPECT_GE(result.confirmation_repeats, 2);
  const auto searched = static_cast<double>(result.evaluated) / static_cast<double>(evaluator.results);
  EXPECT_LT(searched, 1);
  EXPECT_GT(searched, 1 - 2 * share) << "most of it is the search's";
}

// The expected time of a repeat is the search's: where repeats turn out to be longer, fewer are compared.
TEST_F(SessionTest, RepeatsThatTakeLongerThanExpectedLeaveOutCandidates) {
  space = make_space(100, 100);
  std::size_t repeats = 0;
  evaluator.measure = [&](const Configuration&, int time) {
    repeats += time > 0;
    if (time > 0) ::usleep(100'000);
    Measurement m = timed(1e-3, 1e-3);  // all may be the best
    m.measure_seconds = 0.005;
    return m;
  };
  evaluator.before_result = [](std::size_t) { ::usleep(5'000); };
  options.budget.seconds = 1;
  const SessionResult result = run();
  EXPECT_GE(result.confirmation_repeats, 2);
  EXPECT_LT(repeats, 16u) << "one round of all, another of the first three";
}

TEST_F(SessionTest, TheWinnerIsConfirmedSideBySide) {
  // The search is misled: (1, 1) looks fastest at first, but is not when it is measured again.
  evaluator.measure = [](const Configuration& c, int time) {
    if (c[0] == Value(1) && c[1] == Value(1)) return timed(time == 0 ? 0.5e-3 : 3e-3, 1e-6);
    return bowl(c, time);
  };
  const SessionResult result = run();
  EXPECT_EQ(result.confirmation_repeats, 3);
  EXPECT_EQ(space.configuration(result.best[0].index), at(3, 1));
  ASSERT_TRUE(result.probability_best);
  EXPECT_GT(*result.probability_best, 0.99);
  EXPECT_EQ(evaluator.measured.at(*space.index_of(at(2, 1))), 4) << "the default takes part";
  EXPECT_EQ(result.evaluated, 30u) << "confirmation is no evaluation";
}

// A wide interval behind tight ones reaches as far as they do.
TEST_F(SessionTest, ANoisyCandidateBehindTightRivalsIsConfirmed) {
  evaluator.measure = [](const Configuration& c, int time) {
    if (c[0] == Value(4) && c[1] == Value(4)) return timed(time == 0 ? 316e-6 : 250e-6, time == 0 ? 37e-6 : 1e-6);
    return timed(300e-6 + 5e-6 * (c[0].as_real() * 3 + c[1].as_real()), 1e-9);
  };
  for (const char* text : {"time", "max 1/time"}) {
    evaluator.measured.clear();
    objective = Objective::parse({.text = text}, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    EXPECT_EQ(space.configuration(result.best[0].index), at(4, 4)) << text;
    EXPECT_GT(evaluator.measured.at(*space.index_of(at(4, 4))), 1) << text;
  }
}

// The load changes when the search is over: what it read is expected to have changed as much as what was measured
// again.
TEST_F(SessionTest, RowsOfAnotherLoadAreComparedOverTheDrift) {
  std::size_t searched = 0;
  evaluator.measure = [&](const Configuration& c, int time) {
    searched += time == 0;
    Measurement m = bowl(c, time);
    const double factor = searched == space.size() && time > 0 ? 4 + 0.01 * (time % 2) : 1;
    m.quantities["time"].value *= factor;
    return m;
  };
  Store store = open_store();
  const std::int64_t id = session_of(store);
  const SessionResult result = run(&store, id);
  EXPECT_EQ(space.configuration(result.best[0].index), at(3, 1));
  EXPECT_NEAR(result.search_repeats.factor, 4, 0.02);
  int behind = 0;
  for (std::size_t i = 1; i < result.best.size(); ++i) {
    const auto why =
        unconfirmed(objective, result.best[i].measurement, result.best[0].measurement, result.search_repeats);
    if (result.best[i].rounds > 0 || !why) continue;
    ++behind;
    EXPECT_GT(why->expected, *result.best[0].measurement.value("time")) << "not better under the same load";
    EXPECT_LT(why->expected_gain, 0.003);
  }
  EXPECT_GT(behind, 0);
  ASSERT_TRUE(store.runs(id)[0].certainty);
  EXPECT_EQ(store.runs(id)[0].certainty->probability_best, result.probability_best) << "the store tells the same";
}

// What only an earlier run confirmed is compared with what this one confirms as if under its load, higher or lower.
TEST_F(SessionTest, ConfirmedValuesOfAnEarlierRunFollowTheLoad) {
  for (const double load : {1.5, 0.7}) {
    double now = 1;  // while the best are measured again
    const auto truth = [](const Configuration& c) { return 1e-3 * (1 + 5 * *bowl(c, 0).value("time")); };
    evaluator.measure = [&](const Configuration& c, int time) {
      return timed((time > 0 ? now : 1) * truth(c) * (1 + 0.001 * (time % 3)), 3e-6);
    };
    Store store = open_store();
    const std::int64_t id = session_of(store);
    options.budget.evaluations = 24;
    run(&store, id);
    now = load;
    options.budget.evaluations = 34;
    const SessionResult again = run(&store, id);
    ASSERT_FALSE(again.best.empty());
    int confirmed = 0, earlier = 0;
    for (const StoredRow& row : current_rows(store.rows(id), store.runs(id))) {
      if (!row.confirmed_for) continue;
      ++confirmed;
      EXPECT_NEAR(*row.measurement.value("time") / (load * truth(row.configuration)), 1, 0.01) << load;
      EXPECT_GE(row.rounds, 2);
      earlier += !row.certainty;
      EXPECT_EQ(row.certainty.has_value(), row.measurement.warnings.empty()) << "what is changed is marked";
      EXPECT_EQ(row.measurement.quantities.at("time").provenance,
                row.certainty ? Provenance::measured : Provenance::modelled);
      EXPECT_GE(*row.measurement.value("time") * 1.0001, *again.best[0].measurement.value("time"));
    }
    EXPECT_GT(confirmed, 2);
    EXPECT_GT(earlier, 0) << "else all were measured again, and nothing is tested";
    EXPECT_EQ(again.probability_best, store.runs(id).back().certainty->probability_best);
    evaluator.measured.clear();
    std::filesystem::remove(store.file());
  }
}

// Search values that do not repeat say little of what was not measured again: it is confirmed as well.
TEST_F(SessionTest, WhereTheSearchDoesNotRepeatMoreIsConfirmed) {
  evaluator.measure = [this](const Configuration& c, int time) {
    if (c == at(2, 1)) return timed(1, 1e-9);
    const bool slow = (*space.index_of(c) * 7 + static_cast<std::size_t>(time) * 3) % 4 == 0;
    return timed(slow ? 600e-6 : 200e-6, 1e-9);
  };
  const SessionResult result = run();
  EXPECT_EQ(evaluator.measured.at(*space.index_of(at(2, 1))), 4) << "the default, in one batch of them";
  std::size_t again = 0;
  for (const auto& [index, times] : evaluator.measured) again += times > 1;
  EXPECT_GT(again, 10u);
  EXPECT_LT(*result.probability_best, 0.9);
}

// A single repeat may fall into a quiet moment of the machine.
TEST_F(SessionTest, NothingIsConfirmedByOneRepeat) {
  space = make_space(20, 20);
  for (std::uint64_t budget = 12; budget <= 80; ++budget) {
    Random random(budget);
    evaluator = FakeEvaluator();
    evaluator.measure = [&](const Configuration& c, int) {
      const double value = *bowl(c, 0).value("time") * std::exp(0.3 * random.normal());
      return timed(value, 0.02 * value);
    };
    options.budget.evaluations = budget;
    for (const auto& row : run().best) EXPECT_NE(row.rounds, 1) << budget;
    EXPECT_LE(evaluator.results, budget);
  }
}

// Two repeats right after other loads may favour one of several that hardly differ, however little their choice loses.
TEST_F(SessionTest, AllThatMayBeTheBestAreRepeatedThreeTimes) {
  evaluator.measure = [&](const Configuration& c, int time) {
    if (c[0] != Value(3) || c[1].as_real() > 4) return bowl(c, time);
    return timed((time + c[1].as_integer()) % 2 == 0 ? 1e-3 : 1.002e-3, 1e-6);
  };
  const SessionResult result = run();
  ASSERT_TRUE(result.expected_loss);
  EXPECT_LT(*result.expected_loss, 0.003);
  for (int y = 1; y <= 4; ++y)
    EXPECT_GE(evaluator.measured.at(*space.index_of(at(3, y))), 1 + 3) << "the search and three repeats, y = " << y;
  std::set<double> settling;
  for (const EvaluationRequest& request : evaluator.requests) {
    EXPECT_EQ(request.settle_seconds > 0, request.repeat) << "a GPU is under load before each repeat";
    settling.insert(request.settle_seconds);
  }
  EXPECT_EQ(settling.size(), 3u) << "longer before those that decide between the last";
}

// Batches follow each other while it is open who is best: what is left is more than the batch under way.
TEST_F(SessionTest, TheTimeLeftOfAConfirmationIsThatOfAllOfIt) {
  Random random(3);
  evaluator.measure = [&](const Configuration&, int) {
    Measurement m = timed(1e-3 * std::exp(0.03 * random.normal()), 3e-5);
    m.measure_seconds = 0.3;  // the search took longer than the confirmation may
    return m;
  };
  evaluator.before_result = [](std::size_t) { ::usleep(5000); };
  std::vector<std::pair<double, double>> told;  // when, and what was left
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  options.progress = [&](const SessionProgress& progress) {
    if (!progress.phase.empty()) told.emplace_back(now(), *progress.seconds_left);
  };
  EXPECT_GE(run().confirmation_repeats, 9) << "several batches";
  const double all = told.back().first - told.front().first;
  std::vector<double> ratios;
  for (const auto& [when, left] : told)
    if (told.back().first - when > all / 10) ratios.push_back(left / (told.back().first - when));
  std::ranges::sort(ratios);
  EXPECT_GT(ratios[ratios.size() / 2], 1 / 3.0);
  EXPECT_LT(ratios[ratios.size() / 2], 3.0);
}

TEST_F(SessionTest, TheTimeLeftIsAtMostWhatIsLeftOfTheBudget) {
  Random random(3);
  evaluator.measure = [&](const Configuration&, int) {
    Measurement m = timed(1e-3 * std::exp(0.03 * random.normal()), 3e-5);
    m.measure_seconds = 20;  // by which repeats are expected to take longer than the budget
    return m;
  };
  options.budget.seconds = 1000;
  bool confirming = false;
  options.progress = [&](const SessionProgress& progress) {
    confirming = confirming || !progress.phase.empty();
    if (progress.seconds_left) {
      EXPECT_LE(progress.seconds + *progress.seconds_left, 1000) << progress.phase;
    }
  };
  run();
  EXPECT_TRUE(confirming);
}

TEST_F(SessionTest, RoundsOfConfirmationAreRowsOfTheirOwnKindAndTheirMeanCounts) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  const SessionResult result = run(&store, id);
  std::map<std::string, int> search, rounds, means;
  for (const StoredRow& row : store.rows(id)) {
    const std::string key = row.configuration[0].to_string() + "," + row.configuration[1].to_string();
    ++(row.kind == RowKind::search ? search : row.kind == RowKind::confirmation ? rounds : means)[key];
    EXPECT_EQ(row.run, 1);
  }
  EXPECT_EQ(search.size(), 30u);
  for (const auto& [key, count] : search) EXPECT_EQ(count, 1) << key;
  EXPECT_EQ(rounds.size(), 2u) << "the default is among the first two";
  for (const auto& [key, count] : rounds) EXPECT_EQ(count, 3) << key;
  EXPECT_EQ(means.size(), 2u);
  const std::vector<StoredRow> counting = store.results(id);
  ASSERT_EQ(counting.size(), 30u);
  for (const StoredRow& row : counting) {
    if (row.configuration != at(3, 1)) continue;
    EXPECT_EQ(row.rounds, 3);
    EXPECT_EQ(row.measurement.value("time"), result.best[0].measurement.value("time"))
        << "the store tells the same number";
    ASSERT_TRUE(row.confirmed_for);
    EXPECT_EQ(row.confirmed_for->text, "time");
  }
  ASSERT_EQ(store.runs(id).size(), 1u);
  EXPECT_EQ(store.runs(id)[0].ended, "the whole space is measured");
  EXPECT_EQ(store.runs(id)[0].confirmed, 3);
}

TEST_F(SessionTest, WhatIsConfirmedIsNotMeasuredAgainByTheSameCommand) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  const SessionResult first = run(&store, id);
  const std::size_t requested = evaluator.requests.size();
  const SessionResult again = run(&store, id);
  EXPECT_EQ(evaluator.requests.size(), requested);
  EXPECT_EQ(again.evaluated, 0u);
  EXPECT_EQ(again.best[0].index, first.best[0].index);
  EXPECT_EQ(again.best[0].measurement.value("time"), first.best[0].measurement.value("time"));
  EXPECT_EQ(again.confirmation_repeats, 3);
}

TEST_F(SessionTest, WhatWasConfirmedForAnotherObjectiveIsNotSaidToBeConfirmed) {
  evaluator.measure = [](const Configuration& c, int time) {
    Measurement m = bowl(c, time);
    m.quantities["energy"] = {*m.value("time"), 1e-9, 7, "fake", "", Provenance::measured};
    return m;
  };
  Store store = open_store();
  const std::int64_t id = session_of(store);
  EXPECT_EQ(run(&store, id).confirmation_repeats, 3);
  Objective energy = Objective::parse({.text = "energy"}, {});
  options.confirm = false;
  const SessionResult result = run_session(space, energy, evaluator, &store, id, options);
  EXPECT_EQ(space.configuration(result.best[0].index), at(3, 1));
  EXPECT_EQ(result.confirmation_repeats, 0);
  EXPECT_FALSE(result.probability_best);
}

TEST_F(SessionTest, AChangedMetricIsComputedForStoredRowsAsWell) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  Problem problem;
  problem.parameters = space.parameters();
  problem.metrics = {{"rate", Expression::parse("x / time"), ""}};
  options.problem = &problem;
  options.budget.evaluations = 5;
  run(&store, id);
  problem.metrics = {{"rate", Expression::parse("2 * x / time"), ""}};
  run(&store, id);
  for (const StoredRow& row : store.rows(id)) {
    const double x = row.configuration[0].as_real(), time = *row.measurement.value("time");
    EXPECT_DOUBLE_EQ(row.measurement.metrics.at("rate"), 2 * x / time);
  }
}

TEST_F(SessionTest, CandidatesAreToldWhenTheyCanNoLongerWin) {
  options.confirm = false;
  run();
  EXPECT_EQ(evaluator.requests[0].give_up_above, 1e300) << "the default is measured in full";
  double last = 1e300;
  for (std::size_t i = 1; i < evaluator.requests.size(); ++i) {
    EXPECT_LE(evaluator.requests[i].give_up_above, last);
    last = evaluator.requests[i].give_up_above;
  }
  EXPECT_NEAR(last, 1e-3, 1e-5);
}

// The leader's interval is Student's t: few samples rule little out.
TEST_F(SessionTest, CandidatesAreRuledOutByTheLeadersInterval) {
  options.confirm = false;
  evaluator.measure = [](const Configuration&, int) {
    Measurement m = timed(1e-3, 1e-5);
    m.quantities["time"].degrees = 3;
    return m;
  };
  run();
  EXPECT_NEAR(evaluator.requests.back().give_up_above, 1e-3 + 3.182 * 1e-5, 1e-8);
}

TEST_F(SessionTest, ProgressComesOncePerResultAndOnlyWhenDurable) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  options.confirm = false;
  std::size_t reported = 0;
  options.progress = [&](const SessionProgress& progress) {
    ++reported;
    EXPECT_EQ(progress.total, 30u);
    ASSERT_NE(progress.last, nullptr);
    EXPECT_GE(store.rows(id).size(), reported);
  };
  run(&store, id);
  EXPECT_EQ(reported, 30u);
}

TEST_F(SessionTest, EarlyStopEndsAHopelessSearch) {
  space = make_space(40, 40);
  options.strategy = "auto";
  options.confirm = false;
  evaluator.measure = [](const Configuration&, int) { return timed(1e-3); };
  const SessionResult result = run();
  EXPECT_LT(result.evaluated, 200u);
  EXPECT_THAT(result.stopped_because, HasSubstr("no improvement above 1 %"));
}

TEST_F(SessionTest, ResultsOfASearchForAnotherObjectiveEndNoSearch) {
  space = make_space(40, 40);
  options.strategy = "auto";
  options.confirm = false;
  options.budget.evaluations = 120;
  // least time and least energy lie apart
  evaluator.measure = [](const Configuration& c, int) {
    Measurement m = bowl(c, 0);
    const double x = c[0].as_real() - 37, y = c[1].as_real() - 37;
    m.quantities["energy"].value = 1 + x * x + y * y;
    return m;
  };
  Store store = open_store();
  const std::int64_t session = session_of(store);
  const auto search = [&](const std::string& text) {
    Objective wanted = Objective::parse({text, {}}, {});
    return run_session(space, wanted, evaluator, &store, session, options);
  };
  const SessionResult time = search("time"), energy = search("energy");
  EXPECT_EQ(energy.resumed, time.evaluated);
  EXPECT_GT(energy.evaluated, 100u) << "the budget is that of this objective";
  EXPECT_LT(energy.best.front().measurement.value("energy"), 50);
  EXPECT_EQ(search("energy").evaluated, 0u) << "its own results count";
}

TEST_F(SessionTest, NothingButTimeoutsEndTheSearch) {
  int results = 0;
  evaluator.measure = [&](const Configuration& c, int) {
    ++results;
    return c == at(2, 1) || results > 2 ? failed(Status::timeout, "late") : failed(Status::launch_error, "no");
  };
  EXPECT_EQ(run().evaluated, 4u) << "the default, a failure of another kind, and two";
  options.early_stop = false;
  EXPECT_EQ(run().evaluated, space.size());
  options.early_stop = true;
  evaluator.measure = [&](const Configuration& c, int) {
    return c == at(2, 1) ? timed(1e-3) : failed(Status::timeout, "late");
  };
  EXPECT_EQ(run().evaluated, space.size()) << "where the default works, the others may be slow";
}

TEST_F(SessionTest, NothingButWrongResultsEndTheSearch) {
  evaluator.measure = [](const Configuration&, int) { return failed(Status::wrong_result, "differs"); };
  EXPECT_LT(run().evaluated, space.size());
  options.early_stop = false;
  EXPECT_EQ(run().evaluated, space.size());
  options.early_stop = true;
  evaluator.measure = [&](const Configuration& c, int) {
    return c == at(2, 1) ? timed(1e-3) : failed(Status::wrong_result, "differs");
  };
  EXPECT_EQ(run().evaluated, space.size()) << "where one agrees, the others may differ";
}

TEST_F(SessionTest, NothingButOneCompileErrorEndsTheSearch) {
  int results = 0;
  evaluator.measure = [&](const Configuration&, int) {
    ++results;
    return failed(Status::compile_error,
                  fmt::format("k.cu:{}: error: no such name\n{}", results, results % 2 ? "float" : "double"));
  };
  EXPECT_LT(run().evaluated, space.size()) << "numbers and later lines differ";
  options.early_stop = false;
  EXPECT_EQ(run().evaluated, space.size());
  options.early_stop = true;
  evaluator.measure = [&](const Configuration& c, int) {
    return failed(Status::compile_error, c == at(2, 1) ? "error: a" : "error: b");
  };
  EXPECT_EQ(run().evaluated, space.size()) << "errors that depend on the configuration";
  evaluator.measure = [&](const Configuration& c, int) {
    return c == at(2, 1) ? failed(Status::launch_error, "no") : failed(Status::compile_error, "error: a");
  };
  EXPECT_EQ(run().evaluated, space.size()) << "one compiles";
}

TEST_F(SessionTest, AStoreThatCannotWriteEndsTheSessionWithItsWords) {
  Store store = open_store();
  const std::int64_t id = session_of(store);
  evaluator.measure = [](const Configuration&, int) -> Measurement { throw Error("the evaluator is broken"); };
  EXPECT_THROW(run(&store, id), Error);
  EXPECT_TRUE(store.unfinished(id).empty());
}

TEST(Budget, IsParsed) {
  EXPECT_EQ(Budget::parse("25").evaluations, 25u);
  EXPECT_EQ(Budget::parse("10min").seconds, 600);
  EXPECT_EQ(Budget::parse("90s").seconds, 90);
  EXPECT_EQ(Budget::parse(" 2 h ").seconds, 7200);
  EXPECT_EQ(Budget::parse("1.5kJ").joules, 1500);
  const Budget all = Budget::parse("100, 5min, 500J");
  EXPECT_EQ(all.evaluations, 100u);
  EXPECT_EQ(all.seconds, 300);
  EXPECT_EQ(all.joules, 500);
  for (const char* bad : {"", "ten", "0", "-5", "1.5", "10 parsecs", "5,,6", "nan", "1e400"}) {
    EXPECT_THROW(Budget::parse(bad), UserError) << bad;
  }
}

}  // namespace
}  // namespace ergotune
