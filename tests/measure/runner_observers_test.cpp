// What observers are shown of a configuration, phase by phase.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/random.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::HasSubstr;

struct RecordingObserver : Observer {
  std::vector<std::string> calls;
  std::atomic<int> during_calls{0};
  std::thread::id during_thread;
  std::string throw_in;
  std::string name() const override { return "recorder"; }
  void note(const std::string& call) {
    if (calls.empty() || calls.back() != call) calls.push_back(call);
    if (call == throw_in) throw std::runtime_error("broken in " + call);
  }
  void register_configuration(const ObservedConfiguration&) override { note("register"); }
  void before_start() override { note("before"); }
  void after_start() override {
    note("after_start");
    // during comes from its own thread: give it a chance to be called before the launches end
    for (int i = 0; i < 1000 && during_calls == 0 && calls.size() > 3; ++i) std::this_thread::yield();
  }
  void during() override {
    during_thread = std::this_thread::get_id();
    ++during_calls;
  }
  void after_finish() override { note("after_finish"); }
  std::map<std::string, Quantity> results() override {
    return {{"watched", {42, 0, 1, "by hand", "", Provenance::measured}}};
  }
};

TEST_F(RunnerTest, ObserversSeeEveryRepetitionInOrder) {
  auto observer = std::make_shared<RecordingObserver>();
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  const Measurement m = measure(runner, 32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  ASSERT_EQ(observer->calls.size(), 1u + 3u * static_cast<std::size_t>(m.quantities.at("time").n));
  EXPECT_EQ(observer->calls[0], "register");
  for (std::size_t i = 1; i + 2 < observer->calls.size(); i += 3) {
    EXPECT_EQ(observer->calls[i], "before");
    EXPECT_EQ(observer->calls[i + 1], "after_start");
    EXPECT_EQ(observer->calls[i + 2], "after_finish");
  }
  EXPECT_EQ(m.value("watched"), 42);
  if (observer->during_calls > 0) {
    EXPECT_NE(observer->during_thread, std::this_thread::get_id());
  }
}

TEST_F(RunnerTest, AnObserverThatThrowsIsTheConfigurationsRuntimeError) {
  for (const char* hook : {"register", "before", "after_start", "after_finish"}) {
    auto observer = std::make_shared<RecordingObserver>();
    observer->throw_in = hook;
    Runner runner(device, problem, options);
    runner.add_observer(observer);
    const Measurement m = measure(runner, 32);
    EXPECT_EQ(m.status, Status::runtime_error);
    EXPECT_EQ(m.message, std::string("observer recorder: broken in ") + hook);
  }
}

struct StreamObserver : Observer {
  LaunchStream stream;
  int requested = 0;
  std::string name() const override { return "stream"; }
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  bool wants_more(const LaunchStream&) override { return ++requested < 20; }
  void finished(const LaunchStream& s) override { stream = s; }
  std::map<std::string, Quantity> results() override { return {}; }
};

TEST_F(RunnerTest, StreamsCountEveryLaunchOnBothClocks) {
  auto observer = std::make_shared<StreamObserver>();
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  const Measurement m = measure(runner, 32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  const auto& marks = observer->stream.marks;
  ASSERT_GE(marks.size(), 20u);
  EXPECT_EQ(marks.front().launches, 0u);
  for (std::size_t i = 1; i < marks.size(); ++i) {
    EXPECT_EQ(marks[i].launches - marks[i - 1].launches, 10u);  // 10 ms of 1 ms launches
    EXPECT_NEAR(marks[i].device_seconds - marks[i - 1].device_seconds, 0.01, 1e-9);
    EXPECT_GE(marks[i].host_time, marks[i - 1].host_time);
  }
}

/// Sees single launches or passes of its own, and says in which order.
struct PhaseObserver : Observer {
  ObserverPhase wanted;
  FakeDevice& device;
  std::vector<std::string> calls;
  std::vector<std::size_t> launches;  ///< between begin and end
  std::size_t before = 0;
  int wanted_passes = 3;
  std::map<std::string, Quantity> found;
  PhaseObserver(ObserverPhase phase, FakeDevice& d) : wanted(phase), device(d) {}
  std::string name() const override { return "phases"; }
  ObserverPhase phase() const override { return wanted; }
  void before_start() override { begin("start"); }
  void after_start() override { calls.push_back("queued"); }
  void after_finish() override { end("finish"); }
  int passes() override { return wanted_passes; }
  void begin_pass(int pass) override { begin("begin " + std::to_string(pass)); }
  void end_pass(int pass) override { end("end " + std::to_string(pass)); }
  std::map<std::string, Quantity> results() override { return found; }

 private:
  void begin(const std::string& call) {
    calls.push_back(call);
    before = device.launches;
  }
  void end(const std::string& call) {
    calls.push_back(call);
    launches.push_back(device.launches - before);
  }
};

TEST_F(RunnerTest, ObserversOfLaunchesSeeExactlyOneAtATimeAndChangeNoTime) {
  device.kernels["double_32"] = right(2e-6);  // so short that a sample has many launches
  const Measurement unwatched = measure(32);
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::launches, device);
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  const Measurement m = measure(runner, 32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  EXPECT_EQ(observer->launches, std::vector<std::size_t>(static_cast<std::size_t>(m.quantities.at("time").n), 1));
  EXPECT_THAT(std::vector(observer->calls.begin(), observer->calls.begin() + 3),
              ::testing::ElementsAre("start", "queued", "finish"));
  EXPECT_NEAR(m.value("time").value(), unwatched.value("time").value(), 1e-12);
  EXPECT_THAT(m.quantities.at("time").method, HasSubstr("launches each"));
}

TEST_F(RunnerTest, SlowLaunchesAreShownFewerTimes) {
  device.kernels["double_32"] = right(2.0);
  options.min_repeats = options.max_repeats = 50;
  options.max_seconds = 1e9;
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::launches, device);
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  measure(runner, 32);
  EXPECT_EQ(observer->launches.size(), 50u);
  options.max_seconds = 1;
  Runner hasty(device, problem, options);
  observer->launches.clear();
  hasty.add_observer(observer);
  measure(hasty, 32);
  EXPECT_EQ(observer->launches.size(), 3u);
}

TEST_F(RunnerTest, APhaseOfItsOwnComesLastWithInputsRestoredBeforeEachLaunch) {
  // a is an input that the kernel spoils, b doubles with every launch
  problem.kernel().arguments[2].access = Access::read_write;
  std::vector<float> spoilt, doubled;
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    spoilt.push_back(launch.buffers[1]->floats()[0]);
    doubled.push_back(launch.buffers[2]->floats()[0]);
    launch.buffers[1]->floats()[0] = 99;
    launch.buffers[2]->floats()[0] *= 2;
    return 1e-3;
  };
  problem.verification.kind = Verification::Kind::none;
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::own, device);
  const auto stream = std::make_shared<StreamObserver>();
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  runner.add_observer(stream);
  const Measurement m = measure(runner, 32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  EXPECT_THAT(observer->calls, ::testing::ElementsAre("begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2"));
  EXPECT_EQ(observer->launches, (std::vector<std::size_t>{1, 1, 1}));
  ASSERT_GT(spoilt.size(), 20u);
  for (std::size_t i = spoilt.size() - 3; i < spoilt.size(); ++i) {
    EXPECT_EQ(spoilt[i], spoilt[0]);
    EXPECT_EQ(doubled[i], doubled[0]);
  }
  EXPECT_EQ(spoilt[spoilt.size() - 4], 99) << "the launch before was the stream's, which restores nothing";
}

TEST_F(RunnerTest, APhaseOfItsOwnChangesNothingThatWasMeasuredBefore) {
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::own, device);
  observer->found = {{"time", {5, 0, 1, "slow", "", Provenance::measured}},
                     {"counter", {7, 0, 1, "counted", "", Provenance::measured}}};
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  const Measurement m = measure(runner, 32);
  EXPECT_NEAR(m.value("time").value(), 1e-3, 1e-9);
  EXPECT_EQ(m.value("counter"), 7);
  EXPECT_THAT(m.warnings, Contains("observer phases: time is measured already; its value is left out"));
}

TEST_F(RunnerTest, WhatCannotWinIsShownToNobodyElse) {
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::own, device);
  observer->found = {{"counter", {7, 0, 1, "of the configuration before", "", Provenance::measured}}};
  Random random(5);
  device.kernels["double_64"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    return 5e-3 * (1 + 0.05 * random.normal());
  };
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  RunOptions run;
  run.give_up_above = 1e-3;
  const Measurement m = measure(runner, 64, run);
  EXPECT_EQ(m.status, Status::ok);
  EXPECT_TRUE(observer->calls.empty());
  EXPECT_FALSE(m.value("counter"));
}

// What a search for least energy rules out by its time costs no more than that.
TEST_F(RunnerTest, WhatIsTooSlowHasItsTimeAlone) {
  const auto observer = std::make_shared<PhaseObserver>(ObserverPhase::stream, device);
  observer->found = {{"energy", {7, 0, 1, "stream", "", Provenance::measured}}};
  Runner runner(device, problem, options);
  runner.add_observer(observer);
  RunOptions run;
  run.energy_up_to = 0.5e-3;
  const Measurement slow = measure(runner, 32, run);
  EXPECT_EQ(slow.status, Status::ok);
  EXPECT_NEAR(slow.value("time").value(), 1e-3, 1e-9);
  EXPECT_FALSE(slow.value("energy"));
  EXPECT_TRUE(observer->calls.empty());
  run.energy_up_to = 2e-3;
  EXPECT_EQ(measure(runner, 32, run).value("energy"), 7);
}

TEST_F(RunnerTest, TheProblemsObserversTakePartByThemselves) {
  problem.observers = {{"launches", {}, {}}, {"host_time", {{"passes", {5}}}, {}}};
  const Measurement m = measure(32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  EXPECT_EQ(m.value("launches"), static_cast<double>(m.quantities.at("time").n));
  EXPECT_GT(m.value("host_time").value(), 0);
  EXPECT_EQ(m.quantities.at("host_time").n, 5);
  EXPECT_EQ(m.quantities.at("host_time").method, "own phase");
  problem.observers = {{"lauches", {}, {}}};
  EXPECT_THROW(Runner(device, problem, options), UserError);
}

}  // namespace
}  // namespace ergotune
