// How often the runner launches and restores, and what it makes of the times: by the fake device's own count.
#include <fmt/format.h>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "measure/estimate.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct RunnerLaunches : RunnerTest {
  RunnerLaunches() { options.min_repeats = options.max_repeats = 2; }
  std::size_t launches_of(double seconds, int warm_up) {
    device.kernels["double_32"] = right(seconds);
    device.launches = 0;
    options.warm_up = warm_up;
    last = measure(32);
    return device.launches;
  }
  Measurement last;
};

TEST_F(RunnerLaunches, AreTheVerifiedOneTheWarmUpAndTheSamples) {
  EXPECT_EQ(launches_of(1e-3, 0), 1 + 2u);
  EXPECT_EQ(launches_of(1e-3, 1), 1 + 1 + 2u);
  EXPECT_EQ(launches_of(1e-3, 3), 1 + 3 + 2u);
  EXPECT_EQ(last.quantities.at("time").method, "trimmed mean of device events");
}

TEST_F(RunnerLaunches, OfShortKernelsAreLookedAtOnceMoreBeforeTheyAreCounted) {
  options.min_sample_seconds = 0.25;
  EXPECT_EQ(launches_of(0.125, 1), 1 + 1 + 1 + 2 * 2u);
  EXPECT_EQ(last.quantities.at("time").method, "trimmed mean of device events, 2 launches each");
  EXPECT_EQ(launches_of(0.125, 0), 1 + 2 * 2u) << "no warm-up is wanted";
  EXPECT_EQ(launches_of(0.25, 1), 1 + 1 + 2u) << "as long as a sample must be";
}

TEST_F(RunnerLaunches, TheQuickerOfTwoLooksSaysHowManyShareASample) {
  options.min_sample_seconds = 1;
  for (const double first : {0.125, 0.5}) {
    device.launches = 0;
    device.kernels["double_32"] = [this, first](const FakeLaunch& launch) {
      right(0)(launch);
      return device.launches == 2 ? first : device.launches == 3 ? 0.625 - first : 0.25;
    };
    EXPECT_THAT(measure(32).quantities.at("time").method, HasSubstr("8 launches each")) << first;
  }
}

TEST_F(RunnerLaunches, TheIntervalIsToldInPercent) {
  device.kernels["double_32"] = [this](const FakeLaunch& launch) {
    right(0)(launch);
    return device.launches % 2 == 0 ? 1.0 : 1.00225;
  };
  options.max_seconds = 100;
  options.max_repeats = options.min_repeats = 20;
  options.precision = 0.000094;
  const Measurement m = measure(32);
  EXPECT_EQ(m.status, Status::not_converged);
  const double found = 100 * estimate_time(m.times).relative_half_width;
  EXPECT_EQ(m.message, fmt::format("the 95 % interval of the time is +-{:.2g} % after 20 samples; 0.0094 % was asked", found));
  EXPECT_NE(fmt::format("{:.2g}", found), fmt::format("{:.2g}", 1.01 * found)) << "a percent of that would be seen";
}

TEST_F(RunnerLaunches, WithoutATimeItIsAFailureThatNobodyObserves) {
  launches_of(0, 1);
  EXPECT_EQ(last.status, Status::runtime_error);
  EXPECT_EQ(last.message, "the device reported a launch time of zero");
  EXPECT_EQ(device.launches, 1 + 1 + 1 + 2 * 20000u) << "nothing comes after that";
  EXPECT_TRUE(last.times.empty());
}

TEST_F(RunnerLaunches, SecondsOfVerifyingAndMeasuringAreTheWholeRun) {
  const double begin = host_seconds();
  launches_of(1e-3, 1);
  const double whole = host_seconds() - begin;
  EXPECT_GE(last.verify_seconds, 0);
  EXPECT_GE(last.measure_seconds, 0);
  EXPECT_GT(last.verify_seconds + last.measure_seconds, 0);
  EXPECT_LE(last.verify_seconds + last.measure_seconds, whole);
}

TEST_F(RunnerLaunches, BuffersAreCopiedBackWhereSomethingMayHaveChangedThem) {
  bool spoils = false;
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    if (spoils) throw DeviceError(DeviceFault::launch, "refused");
    return 1e-3;
  };
  device.kernels["double_64"] = [](const FakeLaunch&) { return 1e-3; };
  Runner runner(device, problem, options);
  const auto copies = [&](int block) {
    device.copies = 0;
    last = measure(runner, block);
    return device.copies;
  };
  EXPECT_EQ(copies(32), 1u) << "the output";
  EXPECT_EQ(copies(32), 1u);
  EXPECT_EQ(copies(64), 1u);
  EXPECT_EQ(last.status, Status::wrong_result);
  EXPECT_EQ(copies(32), 2u) << "the input as well, after something that was wrong";
  RunOptions only;
  only.reference_only = true;
  measure(runner, 32, only);
  EXPECT_EQ(copies(32), 1u) << "not after a reference that was right";
  spoils = true;
  EXPECT_EQ(copies(32), 1u);
  spoils = false;
  EXPECT_EQ(copies(32), 2u) << "or that was refused";
  EXPECT_EQ(copies(32), 1u);
}

TEST_F(RunnerLaunches, WithoutVerificationNothingIsInDoubt) {
  options.verify = false;
  Runner runner(device, problem, options);
  for (int i = 0; i < 2; ++i) {
    device.copies = 0;
    EXPECT_EQ(measure(runner, 32).status, Status::ok);
    EXPECT_EQ(device.copies, 1u);
  }
}

struct Throwing : Observer {
  bool throws = true;
  std::string name() const override { return "thrower"; }
  void before_start() override {
    if (throws) throw std::runtime_error("broken");
  }
  std::map<std::string, Quantity> results() override { return {}; }
};

TEST_F(RunnerLaunches, AfterAnObserverThatFailedInputsAreCopiedBackToo) {
  const auto observer = std::make_shared<Throwing>();
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  EXPECT_EQ(measure(runner, 32).status, Status::runtime_error);
  observer->throws = false;
  device.copies = 0;
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(device.copies, 2u);
  EXPECT_TRUE(runner.observes("thrower"));
  EXPECT_FALSE(runner.observes("somebody"));
}

/// What it is shown of each configuration.
struct Noting : Observer {
  std::vector<ObservedConfiguration> seen;
  ObserverPhase wanted = ObserverPhase::repetitions;
  std::string name() const override { return "noting"; }
  ObserverPhase phase() const override { return wanted; }
  void register_configuration(const ObservedConfiguration& configuration) override { seen.push_back(configuration); }
  std::map<std::string, Quantity> results() override { return {}; }
};

TEST_F(RunnerLaunches, ObserversHearOfAConfigurationAndOfItsTimeOnceThatIsKnown) {
  const auto observer = std::make_shared<Noting>();
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  RunOptions run;
  run.give_up_above = 5;
  run.objective_quantity = "energy";
  ASSERT_EQ(measure(runner, 64, run).status, Status::ok);
  ASSERT_EQ(observer->seen.size(), 2u);
  EXPECT_EQ(observer->seen[0].expected_launch_seconds, 0);
  EXPECT_NEAR(observer->seen[1].expected_launch_seconds, 2e-3, 1e-9);
  for (const auto& seen : observer->seen) {
    EXPECT_EQ(seen.give_up_above, 5);
    EXPECT_EQ(seen.objective_quantity, "energy");
    EXPECT_EQ(seen.round_launches, 1u);
  }
  EXPECT_THAT(*observer->seen[0].names, ElementsAre("block_size_x"));
  run.reference_only = true;
  measure(runner, 64, run);
  EXPECT_EQ(observer->seen.size(), 2u) << "of a reference they hear nothing";
}

TEST_F(RunnerLaunches, SingleLaunchesRestoreWhatTheyRead) {
  const auto observer = std::make_shared<Noting>();
  observer->wanted = ObserverPhase::launches;
  const auto copies = [&] {
    Runner runner(device, problem, options);
    runner.add_observer(observer);
    device.copies = 0;
    EXPECT_EQ(measure(runner, 32).status, Status::ok);
    return device.copies;
  };
  EXPECT_EQ(copies(), 1u) << "before the first launch";
  problem.kernel().arguments[2].access = Access::read_write;
  problem.verification.kind = Verification::Kind::none;
  EXPECT_EQ(copies(), 1 + 1 + 1 + 2u) << "before the first, the warm-up, the samples, and each of two single ones: the output";
}

TEST_F(RunnerLaunches, ColdCachesAreFlushedForSingleLaunches) {
  const auto observer = std::make_shared<Noting>();
  observer->wanted = ObserverPhase::launches;
  options.cold_cache = true;
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  const Measurement m = measure(runner, 32);
  EXPECT_EQ(device.fills, 2 + 2u);
  EXPECT_THAT(m.quantities.at("time").method, HasSubstr("cold cache"));
}

TEST_F(RunnerLaunches, AReferenceMayFollowTheConfiguration) {
  problem.verification.kind = Verification::Kind::kernel;
  auto reference = std::make_shared<Kernel>(problem.kernel());
  reference->function = Template::parse("reference_{{block_size_x}}");
  problem.verification.reference = reference;
  problem.verification.per_configuration = true;
  const auto times = [](float factor) {
    return [factor](const FakeLaunch& launch) {
      for (std::size_t i = 0; i < kCount; ++i) launch.buffers[2]->floats()[i] = factor * launch.buffers[1]->floats()[i];
      return 1e-3;
    };
  };
  device.kernels["reference_32"] = device.kernels["double_32"] = times(2);
  device.kernels["reference_64"] = device.kernels["double_64"] = times(4);
  device.kernels["reference_128"] = times(8);
  device.kernels["double_128"] = times(4);
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 64).status, Status::ok);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(measure(runner, 128).status, Status::wrong_result);
  std::size_t calls = 0;
  device.kernels["reference_64"] = [&](const FakeLaunch&) { return static_cast<double>(++calls); };
  RunOptions run;
  run.reference_only = true;
  measure(runner, 64, run);
  EXPECT_EQ(calls, 0u) << "where only outputs are taken there is nothing to expect";
}

TEST(MeasureOptionsOf, SettingsLetAStreamLastASecondMoreThanWhatIsAskedOfIt) {
  Settings settings;
  const double usual = MeasureOptions().stream_seconds_limit;
  EXPECT_EQ(MeasureOptions::from(settings).stream_seconds_limit, usual);
  settings.energy_seconds = 10;
  EXPECT_EQ(MeasureOptions::from(settings).stream_seconds_limit, 11);
  settings.reference_seconds = 20;
  settings.warm_up = 5;
  EXPECT_EQ(MeasureOptions::from(settings).stream_seconds_limit, 21);
  EXPECT_EQ(MeasureOptions::from(settings).warm_up, 5);
}

}  // namespace
}  // namespace ergotune
