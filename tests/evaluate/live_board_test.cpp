// Clocks, live on a fake GPU: kernels on the host whose time follows the GPU's clock (tests/fakes/nvml/work.cpp),
// set through the real control, watched through the real monitor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "evaluate/live/in_process_evaluator.hpp"
#include "evaluate/scripted_workers.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian_host.hpp"

namespace ergotune {
namespace {

const guardian_host::Host kHost;

using test::ListJournal;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProblem = R"toml(
name = "cycles"
[parameters]
CLOCK = [600, 990, 1980]
LIMIT = [300, 700]
[kernel]
function = "work"
arguments = [{ name = "b", type = "float32", count = 1, access = "write" }]
[kernel.source.c]
text = '''
#include <dlfcn.h>
#include <stdlib.h>
typedef void (*work_type)(double, double, double);
void work(float* b) {
  static work_type run;
  if (!run) run = (work_type)dlsym(dlopen(getenv("ERGOTUNE_NVML"), RTLD_NOW), "fake_nvml_work");
  run(10, 0, 0.3);
  b[0] = 1;
}
'''
)toml";

struct LiveGpu : ::testing::Test {
  fake_nvml::FakeNvml nvml{"generation=hopper"};
  control_trees::Tree place;
  Problem problem = parse_problem(kProblem, "/nowhere/cycles.toml");
  ListJournal journal;

  void SetUp() override {
    nvml.use_here();
    problem.parameters[0].kind = ParameterKind::core_clock_mhz;
    problem.parameters[1].kind = ParameterKind::power_limit_w;
  }
  std::unique_ptr<InProcessEvaluator> open(bool take_over = false) {
    ControlEnvironment environment;
    environment.nvml_library = fake_nvml::FakeNvml::library();
    environment.state_folder = place.root() / "state";
    LiveOptions options;
    options.device = "host";
    options.use_cache = false;
    options.measure.max_seconds = 0.05;
    auto evaluator = std::make_unique<InProcessEvaluator>(problem, options);
    ControlSessionOptions session;
    session.take_over = take_over;
    evaluator->set_controls(ControlSession::open(open_control("nvml:0", environment), session), problem.parameters);
    evaluator->set_journal(&journal);
    return evaluator;
  }
  static Measurement measure(InProcessEvaluator& evaluator, double clock, double limit = 700) {
    evaluator.submit({1, 1, {Value(clock), Value(limit)}, false, 1e300, "time"});
    return evaluator.wait(0)->measurement;
  }
  std::size_t locks_taken() {
    std::size_t count = 0;
    for (const auto& call : nvml.setter_calls()) count += std::string(call.function) == "nvmlDeviceSetGpuLockedClocks";
    return count;
  }
};

TEST_F(LiveGpu, RunsAsRequestedAndSaysSo) {
  const auto evaluator = open();
  const Measurement slow = measure(*evaluator, 600), fast = measure(*evaluator, 1980);
  ASSERT_TRUE(usable(slow.status)) << slow.message;
  ASSERT_TRUE(usable(fast.status)) << fast.message;
  EXPECT_NEAR(*slow.value("core_clock"), 600e6, 1e6) << "also where no energy is measured";
  EXPECT_NEAR(*fast.value("core_clock"), 1980e6, 1e6);
  EXPECT_GT(*slow.value("time"), *fast.value("time"));
  EXPECT_THAT(slow.warnings, Not(Contains(HasSubstr("asked"))));
  EXPECT_TRUE(slow.value("clock_latency") || fast.value("clock_latency")) << "how long a change took is told";
}

TEST_F(LiveGpu, ADriverThatTakesALimitAndIgnoresItGivesAStatus) {
  const auto evaluator = open();
  nvml.add_fault("nvmlDeviceSetPowerManagementLimit", -1);
  const Measurement measurement = measure(*evaluator, 990, 300);
  EXPECT_EQ(measurement.status, Status::launch_error);
  EXPECT_THAT(measurement.message, HasSubstr("power limit 300 W was set, but it is 700 W"));
}

TEST_F(LiveGpu, ALockThatSomebodyResetsIsSetAgainAndTheRunRepeated) {
  const auto evaluator = open();
  ASSERT_TRUE(usable(measure(*evaluator, 990).status));
  int runs = 0;
  journal.also = [&](const EvaluationRequest&) {
    if (runs++ == 0) nvml.gpu().locked = 0;
  };
  const auto before = locks_taken();
  const Measurement measurement = measure(*evaluator, 990);
  ASSERT_TRUE(usable(measurement.status)) << measurement.message;
  EXPECT_NEAR(*measurement.value("core_clock"), 990e6, 1e6);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(locks_taken(), before + 1);
}

TEST_F(LiveGpu, WhoeverResetsItAgainAndAgainLeavesAStatus) {
  const auto evaluator = open();
  ASSERT_TRUE(usable(measure(*evaluator, 990).status));
  journal.also = [&](const EvaluationRequest&) { nvml.gpu().locked = 0; };
  EXPECT_EQ(measure(*evaluator, 990).status, Status::unsupported);
}

TEST_F(LiveGpu, ALimitThatSomebodyChangesIsReadBack) {
  const auto evaluator = open();
  int runs = 0;
  journal.also = [&](const EvaluationRequest&) {
    if (++runs == 2) nvml.gpu().power_limit_mw = 500'000;  // the first run is a look at the GPU
  };
  const Measurement once = measure(*evaluator, 990, 300);
  ASSERT_TRUE(usable(once.status)) << once.message;
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(nvml.gpu().power_limit_mw, 300'000u);
  journal.also = [&](const EvaluationRequest&) { nvml.gpu().power_limit_mw = 500'000; };
  const Measurement always = measure(*evaluator, 990, 300);
  EXPECT_EQ(always.status, Status::unsupported);
  EXPECT_THAT(always.message, HasSubstr("it is 500 W"));
}

TEST_F(LiveGpu, ALockThatShowsUnderLoadOnlyIsSeenBeforeAnythingIsSet) {
  auto& gpu = nvml.gpu();
  gpu.locked = 1;
  gpu.locked_min = gpu.locked_max = 900;
  auto evaluator = open();  // at rest the driver says no more than "idle"
  evaluator->submit({1, 1, {Value(990.0), Value(700.0)}, false, 1e300, "time"});
  EXPECT_THAT(error_of([&] { evaluator->wait(0); }),
              testing::AllOf(HasSubstr("it runs at 900 MHz because of a clock setting"), HasSubstr("--take-over")));
  evaluator.reset();
  EXPECT_EQ(locks_taken(), 0u);
  EXPECT_EQ(gpu.locked, 1);
  EXPECT_EQ(gpu.locked_max, 900u) << "it is still the user's own";
}

TEST_F(LiveGpu, ALockThatShowsUnderLoadOnlyIsTakenOverWhereThatIsRequestedFor) {
  nvml.gpu().locked = 1;
  nvml.gpu().locked_min = nvml.gpu().locked_max = 900;
  const auto evaluator = open(true);
  const Measurement measurement = measure(*evaluator, 990);
  ASSERT_TRUE(usable(measurement.status)) << measurement.message;
  EXPECT_NEAR(*measurement.value("core_clock"), 990e6, 1e6);
  EXPECT_THAT(measurement.warnings, Contains(HasSubstr("taken over")));
}

// B6
TEST_F(LiveGpu, ALowerLimitThatIsEnforcedElsewhereGivesAStatus) {
  const auto evaluator = open();
  nvml.gpu().outer_limit_mw = 400'000;
  evaluator->submit({1, 1, {Value(990.0), Value(700.0)}, false, 1e300, "time"});
  const auto above = evaluator->wait(0);
  EXPECT_FALSE(usable(above->measurement.status));
  EXPECT_TRUE(above->disturbed) << "the limit may be another tomorrow";
  EXPECT_TRUE(usable(measure(*evaluator, 990, 300).status));
}

// B1: no configuration’s status.
TEST_F(LiveGpu, ALostDeviceEndsTheSession) {
  const auto evaluator = open();
  ASSERT_TRUE(usable(measure(*evaluator, 990).status));
  nvml.add_fault("*", 15);
  for (const double clock : {990.0, 600.0}) {
    evaluator->submit({1, 1, {Value(clock), Value(700.0)}, false, 1e300, "time"});
    EXPECT_THROW(evaluator->wait(0), UserError) << clock;
  }
  nvml.clear_faults();
}

TEST_F(LiveGpu, APowerCapIsReportedAndKeepsItsNumbers) {
  nvml.gpu().full_power = 3000;
  const auto evaluator = open();
  measure(*evaluator, 1980, 300);
  const Measurement measurement = measure(*evaluator, 1980, 300);
  ASSERT_TRUE(usable(measurement.status)) << measurement.message;
  EXPECT_THAT(measurement.warnings, Contains(HasSubstr("power cap")));
  EXPECT_THAT(measurement.warnings, Contains(HasSubstr("asked 1980 MHz, ran")));
}

}  // namespace
}  // namespace ergotune
