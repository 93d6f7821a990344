// When the energy meter reads, begins to count, pauses and ends.
#include "ergotune/base/random.hpp"
#include "virtual_meter.hpp"

namespace ergotune {
namespace {

using test::SensorScript;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using EnergyDecisions = test::VirtualMeter;

constexpr const char* kUnsettled = "power had not settled when the measurement began";

TEST_F(EnergyDecisions, TheBudgetIsASecondOrWhatTheQuickestSensorNeeds) {
  EXPECT_DOUBLE_EQ(make().budget(), 1.0);
  sensors[0]->info.kind = SensorKind::windowed_power;
  sensors[0]->info.update_period = 0.5;
  sensors[0]->info.window = 0.25;
  auto& slower = add(SensorKind::windowed_power);
  slower.info.update_period = 5;
  const double needed = shortest_measurement(sensors[0]->info);
  ASSERT_LT(needed, shortest_measurement(slower.info));
  ASSERT_GT(needed, 1);
  EXPECT_DOUBLE_EQ(make().budget(), options.settle_at_least + 0.1 + 1.25 * needed);
  options.budget = 0.5;
  EXPECT_DOUBLE_EQ(make().budget(), 0.5) << "what is asked for";
}

TEST_F(EnergyDecisions, SteadyPowerIsSettledAfterTheLeastTimeAndEndsAtTheSecondGoodLook) {
  make();
  const double seconds = stream();
  EXPECT_EQ(meter->result().status, Status::ok) << meter->result().message;
  EXPECT_TRUE(meter->result().settled);
  EXPECT_THAT(meter->result().warnings, Not(Contains(kUnsettled)));
  EXPECT_NEAR(energy(), 0.1, 1e-9) << "100 W, a millisecond each";
  // settled when it was looked at first after 0.15 s; readings count from one window (60 ms) before
  const double settled = meter->trace().settled_at - began;
  EXPECT_NEAR(settled, 0.15 - 0.06, 0.021);
  // a first good look after 0.25 s of readings (looks are 20 ms apart), a second one 50 ms later
  EXPECT_GE(seconds, settled + 0.25 + 0.05 - 1e-9);
  EXPECT_LE(seconds, settled + 0.25 + 0.05 + 0.02 + 0.005 + 1e-9);
  const double again = stream();
  EXPECT_NEAR(again, seconds, 1e-9) << "nothing is left of the configuration before";
}

TEST_F(EnergyDecisions, ATimeThatBeginsAtZeroIsOneLikeAnother) {
  make();
  const double seconds = stream();
  now = completed = 0;
  make();
  EXPECT_NEAR(stream(), seconds, 0.006);
}

TEST_F(EnergyDecisions, ASensorThatCannotTellYetIsWaitedFor) {
  sensors[0]->info.kind = SensorKind::cumulative_energy;
  sensors[0]->info.update_period = 0.25;
  sensors[0]->value = [](double t) { return 25 * std::floor(4 * t); };
  options.budget = 4;
  make();
  stream();
  EXPECT_TRUE(meter->result().quantities.contains("energy")) << meter->result().message;
  EXPECT_NEAR(energy(), 0.1, 1e-3);
}

TEST_F(EnergyDecisions, PowerThatNeverSettlesIsCountedFromHalfTheBudgetOn) {
  sensors[0]->value = [this](double t) { return 100 + 400 * (t - began); };
  options.budget = 0.8;
  make();
  EXPECT_NEAR(stream(), 0.8, 0.051);
  EXPECT_FALSE(meter->result().settled);
  EXPECT_THAT(meter->result().warnings, Contains(kUnsettled));
  EXPECT_NEAR(meter->trace().settled_at - began, 0.4, 0.021);
}

TEST_F(EnergyDecisions, TheBudgetEndsWhatIsNeverPreciseEnough) {
  Random random(1);
  sensors[0]->value = [&](double) { return 100 + 2 * random.normal(); };
  options.precision = 1e-9;
  options.power_tolerance = 0.5;
  options.budget = 0.75;
  make();
  const double seconds = stream();
  EXPECT_GE(seconds, 0.75);
  EXPECT_LE(seconds, 0.75 + 0.05 + 1e-9) << "one look later at most";
  EXPECT_EQ(meter->result().status, Status::not_converged);
}

TEST_F(EnergyDecisions, AReferenceUsesTheWholeBudget) {
  options.whole_budget = true;
  options.budget = 2;
  make();
  EXPECT_NEAR(stream(), 2, 0.051);
  EXPECT_EQ(meter->result().status, Status::ok);
}

TEST_F(EnergyDecisions, ALookThatIsDueWhenTheBudgetIsSpentEndsIt) {
  options.budget = 0.75;
  options.whole_budget = true;
  make();
  meter->before_start();
  launches.queued_at = now;
  now += 0.75;
  const double looked = now;
  EXPECT_FALSE(meter->wants_more(launches)) << "it is spent to the last bit";
  now = looked + 0.0199;
  EXPECT_TRUE(meter->wants_more(launches)) << "not looked at: it was a moment ago";
  now = looked + 0.02;
  EXPECT_FALSE(meter->wants_more(launches));
}

TEST_F(EnergyDecisions, WhatCanNoLongerWinEndsAtItsFirstLook) {
  Random random(1);
  sensors[0]->value = [&](double) { return 100 + 4 * random.normal(); };
  options.precision = 1e-9;
  options.power_tolerance = 0.5;
  options.budget = 2;
  ObservedConfiguration configuration;
  configuration.objective_quantity = "energy";
  configuration.give_up_above = 0.09;
  make().register_configuration(configuration);
  EXPECT_LT(stream(), 0.6);
  EXPECT_EQ(meter->result().status, Status::ok) << "known well enough for the one thing that matters";
  EXPECT_EQ(meter->result().message, "");
  EXPECT_THAT(meter->result().warnings, Contains("stopped early: it can no longer win"));
  EXPECT_NEAR(energy(), 0.1, 1e-3);
  // it must lie above by three and a half standard errors
  const double doubt = meter->result().quantities.at("energy").standard_error;
  for (const double errors : {3.0, 4.5}) {
    configuration.give_up_above = 0.1 - errors * doubt;
    ASSERT_LT(3 * doubt, 0.01);
    options.budget = 0.5;  // about as many readings, so that the error is about the same
    make().register_configuration(configuration);
    stream();
    EXPECT_EQ(testing::Value(meter->result().warnings, Contains(HasSubstr("no longer win"))), errors == 4.5) << errors;
  }
  configuration.give_up_above = 0.05;
  configuration.objective_quantity = "unknown";
  make().register_configuration(configuration);
  stream();
  EXPECT_THAT(meter->result().warnings, Not(Contains(HasSubstr("no longer win")))) << "of that nothing is known";
}

TEST_F(EnergyDecisions, NoSensorThatReadsIsNoReasonToGoOn) {
  sensors[0]->answer = ReadStatus::failed;
  auto& other = add(SensorKind::instantaneous_power);
  make();
  stream();
  EXPECT_NEAR(energy(), 0.1, 1e-9) << "the other one serves";
  EXPECT_EQ(meter->trace().sensors[0].failure, "it is gone");
  EXPECT_EQ(meter->trace().sensors[1].failure, "");
  other.answer = ReadStatus::not_supported;
  make();
  EXPECT_LT(stream(), 0.01) << "the first look ends it";
  EXPECT_EQ(meter->result().status, Status::unsupported);
  EXPECT_EQ(meter->trace().sensors[1].failure, "it is gone");
  EXPECT_THAT(meter->result().warnings, Not(Contains(kUnsettled))) << "there is nothing to be settled";
  sensors[0]->answer = ReadStatus::no_new_data;
  options.budget = 0.3;
  make();
  EXPECT_GE(stream(), 0.3) << "it may have some later";
  EXPECT_EQ(meter->trace().sensors[0].failure, "");
}

TEST_F(EnergyDecisions, ASensorThatFailsAfterSomeReadingsEndsNothing) {
  sensors[0]->value = [this](double t) {
    if (t - began > 0.1) sensors[0]->answer = ReadStatus::failed;
    return 100.0;
  };
  options.budget = 0.5;
  options.whole_budget = true;
  make();
  EXPECT_GE(stream(), 0.5);
  EXPECT_EQ(meter->trace().sensors[0].failure, "it is gone");
}

TEST_F(EnergyDecisions, WithoutALookItCountsFromTheFirstMark) {
  make();
  meter->before_start();
  launches.marks = {{1025, 0, 0, 0}, {1026, 0, 1, 10}};
  meter->finished(launches);
  EXPECT_EQ(meter->trace().settled_at, 1025);
  meter->before_start();
  meter->finished({});
  EXPECT_EQ(meter->trace().settled_at, 0) << "there is none";
}

TEST_F(EnergyDecisions, TheTraceIsKeptForThoseWhoAskForIt) {
  options.keep_trace = false;
  make();
  stream();
  EXPECT_TRUE(meter->trace().sensors.empty());
  const int reads = sensors[0]->reads;
  meter->during();
  EXPECT_EQ(sensors[0]->reads, reads + 1) << "a last read that was under way";
  EXPECT_TRUE(meter->trace().sensors.empty());
}

TEST_F(EnergyDecisions, ReadsAreAsFarApartAsTheyCost) {
  const auto pause_after = [this](double cost) {
    sensors[0]->cost = cost;
    sensors[0]->sleeps.clear();
    make();
    meter->before_start();
    meter->during();
    return sensors[0]->sleeps.at(0);
  };
  EXPECT_NEAR(pause_after(0), 1e-3, 1e-9) << "the period that was asked for";
  EXPECT_NEAR(pause_after(0.25e-3), 0.75e-3, 1e-9);
  EXPECT_NEAR(pause_after(0.75e-3), 0.75e-3, 1e-9);
  EXPECT_NEAR(pause_after(5e-3), 5e-3, 1e-9);
  EXPECT_NEAR(pause_after(0.5), 10e-3, 1e-9) << "but never for long";
}

TEST_F(EnergyDecisions, TheBoardIsLookedAtOnceInAPeriod) {
  board = [] {
    BoardState state;
    state.core_clock_mhz = 1500;
    return state;
  };
  step = 0.03125;
  options.monitor_period = 0.125;
  make();
  meter->before_start();
  for (int i = 0; i < 9; ++i) meter->during();
  EXPECT_EQ(board_looks, 3) << "at once, after 0.125 s and after 0.25 s";
  ASSERT_EQ(meter->trace().board.size(), 3u);
  EXPECT_EQ(meter->trace().board[1].first, 1024.125);
  EXPECT_EQ(meter->trace().board[2].second.core_clock_mhz, 1500);
}

/// A sensor that sees a quarter of the time, and launches as long as it sleeps.
struct EnergyPauses : EnergyDecisions {
  ObservedConfiguration configuration;
  EnergyPauses() {
    sensors[0]->info.kind = SensorKind::windowed_power;
    sensors[0]->info.update_period = 0.125;
    sensors[0]->info.window = 0.03125;
    configuration.expected_launch_seconds = 0.0625;
    options.budget = 100;
  }
  /// Whether one is wanted after the power has settled.
  double wanted() {
    make().register_configuration(configuration);
    meter->before_start();
    launches.queued_at = now;
    now += 50;
    meter->wants_more(launches);
    return meter->wanted_pause();
  }
};

TEST_F(EnergyPauses, AreForLongLaunchesBesideASensorThatSleeps) {
  EXPECT_GT(wanted(), 0);
  configuration.expected_launch_seconds = 0.25 * 0.03125;
  EXPECT_EQ(wanted(), 0) << "launches that short are in every window";
  configuration.expected_launch_seconds *= 1.01;
  EXPECT_GT(wanted(), 0);
  configuration.expected_launch_seconds = 0;
  EXPECT_EQ(wanted(), 0) << "how long they are is not known";
  configuration.expected_launch_seconds = 0.0625;
  for (const double window : {0.0, 0.8 * 0.125, 0.125}) {
    sensors[0]->info.window = window;
    EXPECT_EQ(wanted(), 0) << "it sees all, or one does not know what it sees: " << window;
  }
  sensors[0]->info.window = 0.0996;
  EXPECT_GT(wanted(), 0);
  configuration.expected_launch_seconds = 4;
  sensors[0]->info.window = 0.5;
  sensors[0]->info.update_period = 2;
  EXPECT_GT(wanted(), 0) << "as well where all of it takes seconds";
}

TEST_F(EnergyPauses, ComeOnlyOnceThePowerHasSettled) {
  make().register_configuration(configuration);
  meter->before_start();
  EXPECT_EQ(meter->wanted_pause(), 0);
}

TEST_F(EnergyPauses, AreAsLongAsALaunchAtMostAndTwoToFourPeriodsApart) {
  add(SensorKind::windowed_power).info = sensors[0]->info;
  sensors[1]->info.update_period = 0.5;  // the slowest of them says how far apart
  std::vector<double> lengths{wanted()};
  double shortest = 1e9, longest = 0;
  for (int i = 0; i < 100; ++i) {
    const double from = now;
    double pause = 0;
    while ((pause = meter->wanted_pause()) == 0) now += 0.0078125;
    shortest = std::min(shortest, now - from);
    longest = std::max(longest, now - from);
    lengths.push_back(pause);
  }
  EXPECT_GE(shortest, 2 * 0.5 - 1e-9);
  EXPECT_LT(shortest, 2.2 * 0.5);
  EXPECT_LE(longest, 4 * 0.5 + 0.0078125);
  EXPECT_GT(longest, 3.8 * 0.5);
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  EXPECT_GE(*least, 1e-3) << "a shorter one is lost";
  EXPECT_LT(*least, 0.01);
  EXPECT_LE(*most, 0.0625);
  EXPECT_GT(*most, 0.055);
  std::sort(lengths.begin(), lengths.end());
  EXPECT_GT(std::unique(lengths.begin(), lengths.end()) - lengths.begin(), 90) << "no two are alike";
}

TEST_F(EnergyPauses, OfLongLaunchesAreAsLongAsThePeriodAtMost) {
  configuration.expected_launch_seconds = 30;
  double most = wanted();
  for (int i = 0; i < 50; ++i, now += 4 * 0.125) most = std::max(most, meter->wanted_pause());
  EXPECT_LE(most, 0.125);
  EXPECT_GT(most, 0.1);
}

}  // namespace
}  // namespace ergotune
