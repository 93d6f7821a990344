// When the energy meter reads, begins to count, pauses and ends.
#include "ergotune/random.hpp"
#include "virtual_meter.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::Not;

using EnergyDecisions = test::VirtualMeter;

constexpr const char* kUnsettled = "power had not settled when the measurement began";

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

}  // namespace
}  // namespace ergotune
