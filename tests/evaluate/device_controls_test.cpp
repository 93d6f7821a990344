// Clocks beside the runner: a device's controls on a Tegra tree, alone and in the live evaluator with scripted workers.
#include "evaluate/live/device_controls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ergotune/problem_file.hpp"
#include "evaluate/live/in_process_evaluator.hpp"
#include "evaluate/scripted_workers.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "measure/energy/clock_watch.hpp"
#include "power/guardian_host.hpp"

namespace ergotune {
namespace {

const guardian_host::Host kHost;

using control_trees::kTegraGpu;
using test::Gate;
using test::ListJournal;
using test::Script;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct TegraTest : ::testing::Test {
  control_trees::Tree tree, state;
  std::vector<Parameter> parameters;
  void SetUp() override {
    control_trees::add_tegra(tree);
    Parameter clock, tile;
    clock.name = "core_clock_mhz";
    clock.kind = ParameterKind::core_clock_mhz;
    tile.name = "TILE";
    parameters = {clock, tile};
  }
  std::unique_ptr<ControlSession> session() const {
    ControlEnvironment environment;
    environment.sysfs_root = tree.root();
    environment.state_folder = state.root() / "state";
    return ControlSession::open(open_control("tegra", environment));
  }
  std::string clock() const { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
  static ControlSetting at(double mhz) { return {{ControlQuantity::core_clock_mhz, mhz}}; }
};

struct DeviceControlsTest : TegraTest {
  std::unique_ptr<DeviceControls> controls;
  void SetUp() override {
    TegraTest::SetUp();
    controls = std::make_unique<DeviceControls>(session(), parameters);
  }
  std::optional<Measurement> apply(const ControlSetting& setting) const {
    RunOptions run;
    return controls->begin(setting, run);
  }
  bool judge(const ControlSetting& setting, Measurement& measurement, bool repeated) const {
    return controls->end(setting, {}, measurement, repeated);
  }
};

TEST_F(DeviceControlsTest, ARefusedSettingIsAStatusAndTheNextIsSetAgain) {
  ASSERT_FALSE(apply(at(1020)));
  const auto refused = apply(at(999));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, Status::unsupported);
  EXPECT_THAT(refused->message, HasSubstr("999"));
  EXPECT_FALSE(apply(at(306)));
  EXPECT_EQ(clock(), "306000000");
}

Measurement that_ran_at(double mhz, std::vector<std::string> warnings = {}) {
  Measurement measurement;
  measurement.quantities["time"] = {1e-3, 1e-6, 7, "", "", Provenance::measured};
  measurement.quantities["core_clock"] = {mhz * 1e6, 0, 1, "", "", Provenance::measured};
  measurement.warnings = std::move(warnings);
  return measurement;
}

TEST_F(DeviceControlsTest, TheClockThatRanIsCompared) {
  ASSERT_FALSE(apply(at(1020)));
  Measurement blind;
  EXPECT_FALSE(judge(at(1020), blind, false));
  EXPECT_THAT(blind.warnings, Contains(HasSubstr("no clock can be read"))) << "no clock was read";
  Measurement right = that_ran_at(1020);
  EXPECT_FALSE(judge(at(1020), right, false));
  EXPECT_THAT(right.warnings, SizeIs(0));
}

TEST_F(DeviceControlsTest, APowerCapExcusesNothingElse) {
  ASSERT_FALSE(apply(at(1020)));
  Measurement capped =
      that_ran_at(900, {"power cap", std::string(ClockWatch::kHeldDown) + ", at 800 MHz in 40 % of the looks"});
  EXPECT_TRUE(judge(at(1020), capped, false));
  EXPECT_FALSE(controls->disturbed()) << "it is measured again first";
  EXPECT_FALSE(judge(at(1020), capped, true));
  EXPECT_EQ(capped.status, Status::unsupported);
  EXPECT_TRUE(controls->disturbed());
  Measurement right = that_ran_at(1020);
  EXPECT_FALSE(judge(at(1020), right, false));
  EXPECT_FALSE(controls->disturbed());
}

TEST_F(DeviceControlsTest, AMemoryClockThatAnotherProgramLowersIsNoResult) {
  const auto ran_at = [](double memory_mhz, double core_mhz = 1020) {
    Measurement measurement = that_ran_at(core_mhz);
    measurement.quantities["memory_clock"] = {memory_mhz * 1e6, 0, 9, "", "", Provenance::measured};
    return measurement;
  };
  ASSERT_FALSE(apply(at(1020)));
  Measurement measurement = ran_at(1600);
  EXPECT_FALSE(judge(at(1020), measurement, false));
  measurement = ran_at(1590);
  EXPECT_FALSE(judge(at(1020), measurement, false)) << "a look on a ramp";
  measurement = ran_at(800);
  EXPECT_TRUE(judge(at(1020), measurement, false));
  EXPECT_FALSE(judge(at(1020), measurement, true));
  EXPECT_EQ(measurement.status, Status::unsupported);
  EXPECT_TRUE(controls->disturbed());
  ASSERT_FALSE(apply(at(306)));
  measurement = ran_at(800, 306);
  EXPECT_FALSE(judge(at(306), measurement, false)) << "another setting has a memory clock of its own";
  measurement = ran_at(1600, 306);
  EXPECT_FALSE(judge(at(306), measurement, false));
  EXPECT_THAT(measurement.warnings, Contains(HasSubstr("memory clock"))) << "what came before was held down";
}

TEST_F(DeviceControlsTest, ADeviceThatIgnoresItsPowerLimitHasNoResult) {
  ASSERT_FALSE(apply(at(1020)));
  ControlSetting limited = at(1020);
  limited[ControlQuantity::power_limit_w] = 130;
  for (const auto& [watts, sensor, ignored] :
       {std::tuple(205.0, "tegra/power", true), std::tuple(135.0, "tegra/power", false),
        std::tuple(205.0, "pm_counters/node", false)}) {
    Measurement measurement = that_ran_at(1020);
    measurement.quantities["power"] = {watts, 1, 10, "", sensor, Provenance::measured};
    EXPECT_EQ(judge(limited, measurement, false), ignored) << watts << " W by " << sensor;
  }
}

TEST_F(DeviceControlsTest, WhatRanElsewhereIsRepeatedOnceAndThenAFailureWithoutNumbers) {
  const std::map<double, std::vector<std::string>> elsewhere{
      {900, {"thermal"}}, {901, {}}, {1300, {}}, {1301, {"power cap"}}};  // faster is never a power cap
  for (const auto& [mhz, reasons] : elsewhere) {
    ASSERT_FALSE(apply(at(1020)));
    Measurement first = that_ran_at(mhz, reasons), second = first;
    EXPECT_TRUE(judge(at(1020), first, false)) << mhz;
    EXPECT_TRUE(usable(first.status));
    ASSERT_FALSE(apply(at(1020)));
    EXPECT_FALSE(judge(at(1020), second, true)) << mhz;
    EXPECT_EQ(second.status, Status::unsupported);
    EXPECT_FALSE(second.value("time"));
    EXPECT_THAT(second.message, HasSubstr("asked 1020 MHz, ran " + std::to_string(static_cast<int>(mhz)) + " MHz"));
    EXPECT_EQ(second.message.find("power cap"), std::string::npos) << second.message;
  }
}

struct SerialDeviceTest : TegraTest {
  SerialDevice device;
  std::vector<std::string> clocks;
  double ran = 1300;
  void SetUp() override {
    TegraTest::SetUp();
    device.set_controls(session(), parameters);
  }
  Measurement measure(double mhz, double runs_at_last, bool dropped = false) {
    const EvaluationRequest request{1, 1, {Value(mhz), Value(16)}};
    return device
        .measure(
            request, "board",
            [&](const RunOptions&) {
              clocks.push_back(clock());
              return that_ran_at(std::exchange(ran, runs_at_last));
            },
            [=] { return dropped; })
        .measurement;
  }
};

TEST_F(SerialDeviceTest, OneConfigurationIsMeasuredAgainWhereItRanElsewhere) {
  EXPECT_EQ(measure(1020, 1020).status, Status::ok);
  EXPECT_THAT(clocks, ElementsAre("1020000000", "1020000000"));
  EXPECT_EQ(measure(999, 1020).status, Status::unsupported) << "and nothing runs at a refused one";
  EXPECT_THAT(clocks, SizeIs(2));
  ran = 1300;
  EXPECT_FALSE(usable(measure(1020, 1300).status));
  clocks.clear();
  EXPECT_EQ(measure(1020, 1020, true).value("core_clock"), 1300e6) << "its result is not wanted";
  EXPECT_THAT(clocks, SizeIs(1));
}

TEST_F(SerialDeviceTest, OfAQueueTheSettingInForceComesFirst) {
  ran = 1020;
  ASSERT_EQ(measure(1020, 1020).status, Status::ok);
  const double requested[] = {306, 1020, 306, 1020};
  for (std::uint64_t id = 0; id < 4; ++id) device.add({id, id, {Value(requested[id]), Value(1)}});
  std::vector<std::uint64_t> taken;
  while (device.waiting() > 0) taken.push_back(device.take_next().id);
  EXPECT_THAT(taken, ElementsAre(1u, 3u, 0u, 2u));
}

struct TunedDevice : TegraTest {
  Script script;
  Problem problem;
  std::vector<std::string> log;  // what ran, at which clock; written by the runner's thread
  double ran_hz = 0;
  ListJournal journal;
  std::unique_ptr<LiveEvaluator> evaluator;

  void SetUp() override {
    TegraTest::SetUp();
    problem.parameters = parameters;
    script.run = [this](const protocol::Run& request) { return run(request); };
    LiveOptions options;
    options.jobs = 2;
    options.use_cache = false;
    evaluator = std::make_unique<LiveEvaluator>(problem, options, script.starter());
    evaluator->set_controls(session(), parameters);
  }
  protocol::Ran run(const protocol::Run& request) {
    log.push_back(request.configuration[0].to_string() + " at " + clock());
    auto answer = Script::ran(request);
    const double hz = ran_hz > 0 ? ran_hz : std::stod(clock());
    answer.measurement.quantities["core_clock"] = {hz, 0, 1, "", "", Provenance::measured};
    if (ran_hz > 0) answer.measurement.warnings.push_back("power cap");
    return answer;
  }
  void ask(std::uint64_t id, double mhz, int tile = 16) {
    evaluator->submit({id, id, {Value(mhz), Value(tile)}, false, 1e300, "time"});
  }
  auto collect(std::size_t count) { return test::results_of(*evaluator, count); }
};

TEST_F(TunedDevice, SetsTheClockBeforeTheRunAndBatchesByClock) {
  Gate all_there;
  script.run = [&](const protocol::Run& request) {
    EXPECT_TRUE(all_there.pass());
    return run(request);
  };
  const double clocks[] = {306, 1020, 306, 1020, 306, 1300.5};
  for (std::uint64_t id = 0; id < 6; ++id) ask(id, clocks[id]);
  EXPECT_EQ(evaluator->pending(), 6u);
  EXPECT_GE(evaluator->capacity(), 8u) << "what is seen beforehand can be put in order";
  all_there.open();
  EXPECT_THAT(collect(6), SizeIs(6));
  EXPECT_EQ(evaluator->pending(), 0u);
  EXPECT_THAT(log, ElementsAre("306.0 at 306000000", "306.0 at 306000000", "306.0 at 306000000", "1020.0 at 1020000000",
                               "1020.0 at 1020000000", "1300.5 at 1300500000"));
}

TEST_F(TunedDevice, TheJournalIsReportedOfEveryRunAndTheClockIsSetByThen) {
  evaluator->set_journal(&journal);
  std::map<std::uint64_t, std::string> clock_then;
  journal.also = [&](const EvaluationRequest& request) { clock_then[request.id] = clock(); };
  ask(1, 1020);
  ask(2, 306);
  ask(3, 999);
  EXPECT_THAT(collect(3), SizeIs(3));
  evaluator->set_journal(nullptr);
  EXPECT_THAT(journal.noted, SizeIs(2)) << "nothing runs at a clock that was refused";
  EXPECT_EQ(clock_then, (std::map<std::uint64_t, std::string>{{1, "1020000000"}, {2, "306000000"}}));
}

TEST_F(TunedDevice, ASettingIsNotLeftWhileOneOfItIsBeingCompiled) {
  Gate slow_may_compile, others_compiled;
  script.compile = [&](const protocol::Compile& request) {
    if (request.id == 2) {
      EXPECT_TRUE(slow_may_compile.pass());
    }
    if (request.id == 3) others_compiled.open();
    return Script::compiled(request);
  };
  script.run = [&](const protocol::Run& request) {
    if (request.id == 1) {
      EXPECT_TRUE(others_compiled.pass());
    }
    return run(request);
  };
  ask(1, 306, 1);
  ask(2, 306, 2);
  ask(3, 1020, 3);
  EXPECT_THAT(collect(1), SizeIs(1));
  EXPECT_FALSE(evaluator->wait(0.2)) << "the clock was changed although one waits for this one";
  slow_may_compile.open();
  EXPECT_THAT(collect(2), SizeIs(2));
  EXPECT_THAT(log, ElementsAre("306.0 at 306000000", "306.0 at 306000000", "1020.0 at 1020000000"));
}

TEST_F(TunedDevice, NobodyIsPassedByForEver) {
  // A strategy that asks for another at the setting in force as soon as it gets an answer; on a slow machine too.
  Gate first;
  std::atomic<std::size_t> requested{0};
  script.run = [&](const protocol::Run& request) {
    if (log.empty()) {
      EXPECT_TRUE(first.pass());
    }
    for (int turn = 0; turn < 5000 && requested < log.size(); ++turn) ::usleep(1000);
    return run(request);
  };
  for (std::uint64_t id = 0; id < 4; ++id) ask(id, 306, static_cast<int>(id));
  ask(1000, 1020);
  first.open();
  std::size_t answers = 0;
  std::uint64_t next = 4;
  for (bool answered = false; !answered && answers < 200; ++answers) {
    const auto result = evaluator->wait(20);
    ASSERT_TRUE(result);
    answered = result->id == 1000;
    ++next;
    if (!answered) ask(next, 306, static_cast<int>(next));
    ++requested;
  }
  EXPECT_GT(answers, 8u) << "clocks are changed seldom";
  EXPECT_LT(answers, 40u) << "and the strategy is still followed";
  evaluator.reset();  // what still runs looks at the variables above
}

TEST_F(TunedDevice, PutsEverythingBackAtTheEndWhenNothingRunsAnyMore) {
  control_trees::Tree untouched;
  control_trees::add_tegra(untouched);
  ask(1, 1020);
  collect(1);
  EXPECT_NE(tree.contents(), untouched.contents());
  evaluator.reset();
  EXPECT_EQ(tree.contents(), untouched.contents());
}

/// Two GPUs, each with controls of its own.
struct TwoTunedDevices : TegraTest {
  control_trees::Tree second_tree, second_state;
  Script script;
  Problem problem;
  LiveOptions options;
  std::unique_ptr<LiveEvaluator> evaluator;

  void start() {
    control_trees::add_tegra(second_tree);
    problem.parameters = parameters;
    script.ready = [this](const protocol::Setup& setup) {
      DeviceInfo device = script.device;
      device.id = setup.device_id;
      device.uuid = "GPU-" + setup.device_id.substr(setup.device_id.size() - 1);
      return protocol::Ready{device, "scripted compiler", true, {}};
    };
    options.devices = {"scripted:0", "scripted:1"};
    options.jobs = 1;
    options.use_cache = false;
    evaluator = std::make_unique<LiveEvaluator>(problem, options, script.starter());
    evaluator->set_controls(session(), parameters, 0);
    ControlEnvironment environment;
    environment.sysfs_root = second_tree.root();
    environment.state_folder = second_state.root() / "state";
    evaluator->set_controls(ControlSession::open(open_control("tegra", environment)), parameters, 1);
  }
  void ask(std::uint64_t id, const std::string& gpu) {
    EvaluationRequest request{id, id, {Value(1020.0), Value(16)}, false, 1e300, "time"};
    request.gpu = gpu;
    evaluator->submit(request);
  }
};

TEST_F(TwoTunedDevices, ABoardRefusesForItselfAlone) {
  Gate all_there;
  script.compile = [&](const protocol::Compile& request) {
    EXPECT_TRUE(all_there.pass());
    return Script::compiled(request);
  };
  start();
  std::filesystem::remove(tree.real(std::string(kTegraGpu) + "/max_freq"));
  std::filesystem::create_directory(tree.real(std::string(kTegraGpu) + "/max_freq"));
  ask(1, "GPU-0");
  ask(2, "GPU-1");
  ask(3, "");
  evaluator->runner_pid();  // all of them wait
  all_there.open();
  std::map<std::uint64_t, EvaluationResult> results;
  while (results.size() < 3) {
    auto result = evaluator->wait(20);
    ASSERT_TRUE(result);
    results[result->id] = std::move(*result);
  }
  EXPECT_EQ(results[1].measurement.status, Status::launch_error);
  EXPECT_EQ(results[1].gpu, "GPU-0");
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_EQ(results[id].measurement.status, Status::ok) << id << results[id].measurement.message;
    EXPECT_EQ(results[id].gpu, "GPU-1");
  }
}

// The first device's configuration waits for a share, and the second device has nothing to compile.
TEST_F(TwoTunedDevices, WhatWaitsForAnotherSessionsCompilersIsLookedAtAgain) {
  options.compile_share = std::make_shared<CompileShare>(1);
  ASSERT_TRUE(options.compile_share->take());
  start();
  ask(1, "GPU-0");
  evaluator->runner_pid();
  evaluator->runner_pid();
  ::usleep(20'000);  // it has seen that there is no share, and waits
  options.compile_share->give();
  const auto result = evaluator->wait(20);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->measurement.status, Status::ok);
}

}  // namespace
}  // namespace ergotune
