// The clock that is watched while a configuration runs: what looks at a GPU say, and what the runner does about it.
#include "measure/energy/clock_watch.hpp"

#include "base/clock.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using namespace test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

/// Looks at GPUs, as they are noted where 2100 MHz were requested.
struct Looks {
  std::vector<DeviceState> all;
  Looks& add(double core_mhz, std::vector<std::string> reasons = {}) {
    all.emplace_back();
    all.back().core_clock_mhz = core_mhz;
    all.back().clock_reasons = std::move(reasons);
    return *this;
  }
  Measurement noted(double requested = 2100, bool all_reasons = false) const {
    Measurement measurement;
    note_clock_states(all, measurement, requested, 0.01, all_reasons);
    return measurement;
  }
};

TEST(LooksAtABoard, GiveMeanErrorAndCount) {
  Looks looks;
  looks.add(2000).add(2100).add(2050);
  looks.all[0].throttled_share = 0.25;
  looks.all[2].throttled_share = 0.75;
  const Measurement m = looks.noted();
  const Quantity& core = m.quantities.at("core_clock");
  EXPECT_NEAR(core.value, 2050e6, 1);
  EXPECT_NEAR(core.standard_error, 50e6 / std::sqrt(3), 1);
  EXPECT_EQ(core.n, 3);
  EXPECT_NEAR(m.quantities.at("throttled_share").value, 0.5, 1e-12);
  EXPECT_EQ(m.quantities.at("throttled_share").n, 2);
  EXPECT_EQ(m.quantities.size(), 2u) << "of what nobody reads there is nothing";
}

TEST(LooksAtABoard, ThatRestsDoNotCount) {
  const Measurement m = Looks().add(300, {"idle"}).add(2100).noted();
  EXPECT_NEAR(m.quantities.at("core_clock").value, 2100e6, 1);
  EXPECT_THAT(m.warnings, IsEmpty());
}

TEST(LooksAtABoard, ReasonsAreReportedOnceAndNotThatAClockWasRequestedFor) {
  const auto looks = Looks().add(2100, {"application_clocks", "hardware_slowdown"}).add(2100, {"hardware_slowdown"});
  EXPECT_THAT(looks.noted().warnings, ElementsAre("hardware slowdown"));
  EXPECT_THAT(looks.noted(2100, true).warnings, ElementsAre("application clocks", "hardware slowdown"))
      << "all of them";
}

TEST(LooksAtABoard, FourOfThemTellAClockThatChanged) {
  Looks looks;
  looks.add(2100).add(2100).add(1500);
  EXPECT_THAT(looks.noted().warnings, IsEmpty());
  looks.add(1500);
  EXPECT_THAT(looks.noted().warnings, ElementsAre("the clock changed while it was measured, from 2100 to 1500 MHz"));
  EXPECT_THAT(looks.noted(0).warnings, IsEmpty()) << "none was asked for";
  looks.all[2].clock_reasons = looks.all[3].clock_reasons = {"power_cap"};
  EXPECT_THAT(looks.noted().warnings, ElementsAre("power cap")) << "that explains it";
}

// B2: the power limit excuses what it holds down, and nothing else.
TEST(LooksAtABoard, APowerCapExcusesNoOtherLooks) {
  const auto held_down = Contains(HasSubstr(ClockWatch::kHeldDown));
  const auto noted = [](int capped, int slower, std::vector<std::string> reasons) {
    Looks looks;
    for (int i = 0; i < capped; ++i) looks.add(1900, {"power_cap"});
    for (int i = 0; i < slower; ++i) looks.add(1500, reasons);
    return looks.noted().warnings;
  };
  EXPECT_THAT(noted(20, 0, {}), ElementsAre("power cap"));
  EXPECT_THAT(noted(19, 1, {}), ElementsAre("power cap")) << "an edge";
  EXPECT_THAT(noted(10, 10, {}), held_down);
  EXPECT_THAT(noted(16, 4, {"application_clocks"}), held_down) << "another's lock";
  for (const char* reason : {"thermal", "hardware_slowdown", "hardware_thermal", "power_brake"})
    EXPECT_THAT(noted(10, 10, {"power_cap", reason}), held_down) << reason;
}

TEST(LooksAtABoard, ASingleOneOnAnEdgeIsNoChange) {
  EXPECT_THAT(Looks().add(2100).add(900).add(2100).add(2100).add(2100).add(2100).noted().warnings, IsEmpty());
  EXPECT_THAT(Looks().add(2100).add(2090).add(2105).add(2095).noted().warnings, IsEmpty()) << "within the tolerance";
  const auto looks = Looks().add(2100).add(2100).add(2100).add(1500).add(1500).add(1500);
  EXPECT_THAT(looks.noted().warnings, ElementsAre(HasSubstr("from 2100 to 1500 MHz"))) << "halves, not a third";
}

/// Kernels on a GPU whose clock the test sets, also while they run.
struct WatchedRuns : RunnerTest {
  AmdgpuTree tree;
  RunOptions run;
  const std::string hwmon = "/sys/class/drm/card0/device/hwmon/hwmon3/";
  WatchedRuns() {
    run.watched = "amdgpu:card0";
    run.requested_clock_mhz = 2100;
    run.set_at = host_seconds() - 100;
    options.min_repeats = options.max_repeats = 2;
    options.min_sample_seconds = 0;
    during_launch([](std::size_t) {}, 2.0);
  }
  /// Called with the number of each launch from 1 on.
  void during_launch(const std::function<void(std::size_t)>& what, double seconds) {
    device.kernels["double_32"] = [this, what, seconds](const FakeLaunch& launch) {
      what(device.launches);
      return right(seconds)(launch);
    };
  }
  void clock(double mhz) { tree.put(hwmon + "freq1_input", static_cast<long long>(mhz * 1e6)); }
  Measurement measured() {
    device.launches = 0;
    Runner runner(device, problem, options);
    return measure(runner, 32, run);
  }
  /// The first look, a warm-up, two samples: what a GPU takes that runs at the clock.
  static constexpr std::size_t kUsual = 4;
};

TEST_F(WatchedRuns, WaitUnderLoadForTheClockAndSayHowLongItTook) {
  clock(1500);
  during_launch(
      [this](std::size_t n) {
        if (n == 5) clock(2100);
      },
      2.0);
  const Measurement m = measured();
  const double until_now = host_seconds() - run.set_at;
  EXPECT_EQ(device.launches, kUsual + 3) << "the third, fourth and fifth launch waited";
  const Quantity& latency = m.quantities.at("clock_latency");
  EXPECT_THAT(latency.value, AllOf(Ge(100), Le(until_now)));
  EXPECT_EQ(latency.n, 1);
  EXPECT_EQ(latency.standard_error, 0);
}

TEST_F(WatchedRuns, ThatNeverReachTheirClockBeginAfterAWhile) {
  clock(1500);
  const Measurement m = measured();
  EXPECT_EQ(m.status, Status::ok);
  EXPECT_GE(m.measure_seconds, 0.5);
  EXPECT_GT(device.launches, kUsual);
  EXPECT_FALSE(m.quantities.contains("clock_latency"));
}

TEST_F(WatchedRuns, ALookIsAMomentOfLoadAndNothingElse) {
  run.state_only = true;
  during_launch([](std::size_t) {}, 1e-3);
  const Measurement m = measured();
  EXPECT_EQ(m.status, Status::ok);
  EXPECT_GE(m.measure_seconds, 0.25);
  EXPECT_TRUE(m.quantities.at("core_clock").n >= 5 || m.measure_seconds >= 1);
  EXPECT_FALSE(m.quantities.contains("time"));
  EXPECT_FALSE(m.quantities.contains("error"));
  EXPECT_GT(device.launches, kUsual);
}

}  // namespace
}  // namespace ergotune
