// The live evaluators against real devices of this machine: host functions, and worker processes of the command.
#include "evaluate/live/in_process_evaluator.hpp"
#include "evaluate/live/live_evaluator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "evaluate/one_processor.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProblem = R"toml(
name = "modes"
[parameters]
mode = ["good", "broken", "crash", "endless", "wrong", "slow", "lasting"]
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 100 },
  { name = "a", type = "float32", count = 100 },
  { name = "b", type = "float32", count = 100, access = "write" },
]
[kernel.source.c]
text = '''
#include <unistd.h>
enum { good, broken, crash, endless, wrong, slow, lasting };
static volatile int sink;
void work(int n, const float* a, float* b) {
  for (int i = 0; i < n; ++i) b[i] = 2 * a[i];
  if (mode == crash) *(volatile int*)8 = 1;
  if (mode == endless) for (;;) sink = 1;
  if (mode == wrong) b[3] = 77;
  if (mode == slow) for (int i = 0; i < 200000; ++i) sink = i;
  if (mode == lasting) usleep(200000);
#ifdef FAIL
#error does not compile
#endif
}
'''
[kernel.options]
c = ["{{'-DFAIL' if mode == 'broken' else ''}}"]
)toml";

class LiveTest : public ::testing::Test {
 protected:
  LiveTest() : problem(parse_problem(kProblem, std::filesystem::temp_directory_path() / "modes.toml")) {
    options.device = "host";
    options.use_cache = false;
    options.jobs = 2;
    options.time_limit = 1.5;
    options.worker_command = {ERGOTUNE_BINARY_DIR "/ergotune", "worker"};
    if (!std::filesystem::exists(options.worker_command[0])) problem.name.clear();
  }
  void SetUp() override {
    if (problem.name.empty()) GTEST_SKIP() << "the command is not built";
  }
  static EvaluationRequest request(std::uint64_t id, const char* mode) {
    EvaluationRequest r;
    r.id = id;
    r.index = id;
    r.configuration = {Value(mode)};
    return r;
  }
  static std::map<std::uint64_t, Measurement> collect(Evaluator& evaluator, std::size_t count) {
    std::map<std::uint64_t, Measurement> results;
    for (int i = 0; i < 600 && results.size() < count; ++i) {
      if (auto result = evaluator.wait(0.1)) results[result->id] = std::move(result->measurement);
    }
    return results;
  }
  Problem problem;
  LiveOptions options;
};

TEST_F(LiveTest, EveryFateHasItsStatusAndTheWorkersAreReplaced) {
  LiveEvaluator evaluator(problem, options);
  const std::vector<const char*> modes{"good", "crash", "broken", "endless", "wrong", "slow", "crash", "good"};
  for (std::size_t i = 0; i < modes.size(); ++i) evaluator.submit(request(i + 1, modes[i]));
  EXPECT_EQ(evaluator.pending(), modes.size());
  const auto results = collect(evaluator, modes.size());
  ASSERT_EQ(results.size(), modes.size());
  EXPECT_EQ(evaluator.pending(), 0u);
  EXPECT_TRUE(usable(results.at(1).status)) << results.at(1).message;
  EXPECT_EQ(results.at(2).status, Status::runtime_error);
  EXPECT_THAT(results.at(2).message, HasSubstr("signal 11"));
  EXPECT_EQ(results.at(3).status, Status::compile_error);
  EXPECT_THAT(results.at(3).message, HasSubstr("does not compile"));
  EXPECT_EQ(results.at(4).status, Status::timeout);
  EXPECT_EQ(results.at(5).status, Status::wrong_result) << "the reference must survive the runner that made it";
  EXPECT_TRUE(usable(results.at(6).status));
  EXPECT_EQ(results.at(7).status, Status::runtime_error);
  EXPECT_TRUE(usable(results.at(8).status));
  EXPECT_GT(results.at(1).compile_seconds, 0);
  EXPECT_EQ(results.at(8).compile_seconds, 0) << "its code was known";
  EXPECT_GT(results.at(6).value("time").value(), results.at(1).value("time").value());
}

constexpr const char* kOpenclProblem = R"toml(
name = "modes"
[parameters]
mode = ["good", "broken", "compiler_dies", "crash", "wrong"]
[kernel]
function = "work"
arguments = [
  { name = "a", type = "float32", count = 64 },
  { name = "b", type = "float32", count = 64, access = "write" },
]
[kernel.source.opencl]
text = '''
enum { good, broken, compiler_dies, crash, wrong };
#ifdef BROKEN
#error does not compile
#endif
#ifdef COMPILER_DIES
#pragma clang __debug crash
#endif
__kernel void work(__global const float* a, __global float* b) {
  b[get_global_id(0)] = 2 * a[get_global_id(0)] + (mode == wrong);
  if (mode == crash) *(volatile __global int*)8 = 1;
}
'''
[kernel.launch]
global = ["64"]
block = ["16"]
[kernel.options]
opencl = ["{{'-DBROKEN' if mode == 'broken' else ''}}", "{{'-DCOMPILER_DIES' if mode == 'compiler_dies' else ''}}"]
)toml";

// With one processor OpenCL's compiler is the runner: what comes of a configuration is the same.
TEST_F(LiveTest, OpenclsCompilerInTheRunnerIsContainedAsOneBesideIt) {
  const test::OnOneProcessor one;
  const Problem opencl = parse_problem(kOpenclProblem, std::filesystem::temp_directory_path() / "modes.toml");
  options.device = "opencl";
  options.time_limit = 20;
  std::map<std::uint64_t, Measurement> found[2];
  std::string identity[2];
  for (const int jobs : {0, 1}) {
    options.jobs = jobs;
    std::optional<LiveEvaluator> made;
    try {
      made.emplace(opencl, options);
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
    LiveEvaluator& evaluator = *made;
    if (!evaluator.device().is_cpu) GTEST_SKIP() << "no OpenCL on this processor";
    identity[jobs] = evaluator.compiler_identity();
    const std::vector<const char*> modes{"good", "broken", "crash", "compiler_dies", "wrong", "good"};
    for (std::size_t i = 0; i < modes.size(); ++i) evaluator.submit(request(i + 1, modes[i]));
    found[jobs] = collect(evaluator, modes.size());
    ASSERT_EQ(found[jobs].size(), modes.size());
    EXPECT_TRUE(usable(found[jobs][1].status)) << found[jobs][1].message;
    EXPECT_EQ(found[jobs][2].status, Status::compile_error);
    EXPECT_THAT(found[jobs][2].message, HasSubstr("does not compile"));
    EXPECT_EQ(found[jobs][3].status, Status::runtime_error);
    EXPECT_THAT(found[jobs][3].message, HasSubstr("the kernel's process ended with signal 11"));
    EXPECT_EQ(found[jobs][4].status, Status::compile_error);
    EXPECT_THAT(found[jobs][4].message, HasSubstr("the compiler ended with signal"));
    EXPECT_EQ(found[jobs][5].status, Status::wrong_result);
    EXPECT_TRUE(usable(found[jobs][6].status));
    EXPECT_EQ(found[jobs][6].compile_seconds, 0) << "its code was known";
  }
  for (const std::uint64_t id : {2u, 3u, 4u})
    EXPECT_EQ(found[0][id].message, found[1][id].message) << "with nothing in it that was said of others";
  EXPECT_EQ(identity[0], identity[1]) << "or a session would not be found again";
}

TEST_F(LiveTest, CancelDropsEverythingAndTheEvaluatorGoesOn) {
  LiveEvaluator evaluator(problem, options);
  evaluator.submit(request(1, "endless"));
  evaluator.submit(request(2, "good"));
  ::usleep(300'000);
  evaluator.cancel();
  EXPECT_EQ(evaluator.pending(), 0u);
  EXPECT_FALSE(evaluator.wait(0));
  evaluator.submit(request(3, "good"));
  const auto results = collect(evaluator, 1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(usable(results.at(3).status)) << results.at(3).message;
}

/// Kills the runner so many times, each time when it runs something.
void kill_runner(LiveEvaluator& evaluator, const std::atomic<int>& runs, int times) {
  for (int killed = 0; killed < times; ++killed) {
    for (int i = 0; i < 3000 && runs <= killed; ++i) ::usleep(10'000);
    ::usleep(100'000);
    const int pid = evaluator.runner_pid();
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
  }
}

TEST_F(LiveTest, WhatRanWhenItsRunnerWasKilledIsTriedOnceMore) {
  options.time_limit = 30;  // longer than it takes to get there on a busy machine
  struct Journal : RunJournal {
    std::atomic<int> runs{0};
    void about_to_run(const EvaluationRequest&, std::size_t) override { ++runs; }
  } journal;
  LiveEvaluator evaluator(problem, options);
  evaluator.set_journal(&journal);
  evaluator.submit(request(1, "lasting"));
  kill_runner(evaluator, journal.runs, 1);
  const auto innocent = collect(evaluator, 1);
  ASSERT_EQ(innocent.size(), 1u);
  EXPECT_TRUE(usable(innocent.at(1).status)) << innocent.at(1).message;
  journal.runs = 0;
  evaluator.submit(request(2, "endless"));
  kill_runner(evaluator, journal.runs, 2);
  const auto twice = collect(evaluator, 1);
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice.at(2).status, Status::runtime_error);
  EXPECT_THAT(twice.at(2).message, HasSubstr("memory ran out"));
  evaluator.submit(request(3, "good"));
  EXPECT_TRUE(usable(collect(evaluator, 1).at(3).status));
}

TEST_F(LiveTest, AnUnknownDeviceIsTheUsersMistake) {
  options.device = "opencl:99:99";
  EXPECT_THROW(LiveEvaluator(problem, options), UserError);
}

TEST_F(LiveTest, AReferenceThatCrashesIsTheUsersMistake) {
  problem.verification.kind = Verification::Kind::host_function;
  auto reference = std::make_shared<Kernel>(problem.kernel());
  reference->sources[0].text = "void work(int n, const float* a, float* b) { *(volatile int*)8 = 1; }";
  problem.verification.reference = reference;
  EXPECT_THAT(error_of([&] { LiveEvaluator evaluator(problem, options); }),
              testing::AllOf(HasSubstr("signal 11"), HasSubstr("reference")));
}

}  // namespace
}  // namespace ergotune
