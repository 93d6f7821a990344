// Steps unrolled: loops, swaps, queues and their order, and rounds that never end.
#include "kernel/round.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "kernel/configure.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/steps.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Problem problem_with(const std::string& steps, const std::string& more = "") {
  return parse_problem(fmt::format(R"toml(
[constants]
N = 8
[parameters]
T = [1, 2]
[buffers]
x = {{ type = "float32", count = "N" }}
y = {{ type = "float32", count = "N" }}
z = {{ type = "float32", count = "N" }}
[kernels.a]
function = "a"
source.opencl.text = "x"
parameters = {{ B = [4, 2] }}
arguments = [{{ buffer = "x" }}, {{ buffer = "y", access = "write" }}, {{ name = "s", type = "int32", value = "k + B" }}]
launch = {{ grid = ["k + 1"], block = ["B"] }}
[kernels.b]
function = "b_{{{{B}}}}"
source.opencl.text = "x"
parameters = {{ B = [1, 3] }}
arguments = [{{ buffer = "y" }}, {{ buffer = "z", access = "write" }}]
launch = {{ grid = ["1"], block = ["B"] }}
[workload]
{}
steps = [{}, {{ for = "k", to = 0, steps = [{{ kernel = "a" }}] }}]
)toml",
                                   more, steps),
                       "p.toml");
}

/// "a*2 q1 s0 grid 1 y" for each launch: kernel, launches, queue, section, grid, what y stands for.
std::vector<std::string> launches(const Problem& problem, IterationPlan* plan = nullptr) {
  std::vector<std::string> list;
  const IterationPlan walked = visit_launches(
      problem, problem.constants, default_values(problem),
      [&](const IterationLaunch& launch, const Scope& scope, const BufferNames& names) {
        const Kernel& kernel = problem.kernels[launch.kernel];
        const LaunchGeometry geometry = make_geometry(kernel.launch, scope);
        const auto y = names.find("y");
        list.push_back(fmt::format("{}*{} q{} s{} {}x{} {}", kernel.name, launch.launches, launch.queue, launch.section,
                                   geometry.grid[0], geometry.block[0], y == names.end() ? "y" : y->second));
      });
  if (plan) *plan = walked;
  return list;
}

TEST(Round, WithoutStepsEveryKernelRunsOnce) {
  Problem problem = problem_with("{ for = \"k\", to = 1, steps = [{ kernel = \"a\" }] }, { kernel = \"b\" }");
  problem.steps.clear();
  problem.kernels[0].launch.grid = {Expression::constant(1)};  // there is no k any more
  EXPECT_THAT(launches(problem), testing::SizeIs(2));
}

TEST(Round, LoopsGiveLaunchSizesAndOutsideTheVariableIsZero) {
  const Problem problem = problem_with(
      "{ kernel = \"a\", launches = \"T + 1\" }, { for = \"k\", from = 1, to = 6, by = 2, steps = [{ kernel = \"a\" }] "
      "}, { kernel = \"b\", launches = 0 }");
  EXPECT_THAT(launches(problem),
              ElementsAre("a*2 q0 s0 1x4 y", "a*1 q0 s0 2x4 y", "a*1 q0 s0 4x4 y", "a*1 q0 s0 6x4 y"));
}

TEST(Round, SwapsHoldToTheEndOfTheRound) {
  const Problem problem = problem_with(
      "{ for = \"k\", to = 3, steps = [{ kernel = \"a\" }, { swap = [\"x\", \"y\"] }] }, { kernel = \"b\" }");
  IterationPlan plan;
  EXPECT_THAT(launches(problem, &plan),
              ElementsAre("a*1 q0 s0 1x4 y", "a*1 q0 s0 2x4 x", "a*1 q0 s0 3x4 y", "b*1 q0 s0 1x1 x"));
  EXPECT_EQ(plan.names.at("x"), "y");
  EXPECT_EQ(plan.launches, 4u);
  EXPECT_THAT(swapped_buffers(problem), ElementsAre(std::pair<std::string, std::string>("x", "y")));
}

TEST(Round, BranchesHaveQueuesAndAnOrderThatAParameterMaySay) {
  const std::string steps =
      "{ kernel = \"b\" }, { concurrent = [\"a\", { name = \"later\", steps = [{ for = \"k\", to = 2, steps = [{ "
      "kernel = \"a\" }] }] }, \"b\"], launches = { b = 4 }, order = \"{{workload.FIRST}}\", priority = { b = \"high\" "
      "} }, { kernel = \"a\" }";
  const Problem problem = problem_with(steps, "parameters = { FIRST = [\"b, later\", \"a\"] }");
  IterationPlan plan;
  EXPECT_THAT(launches(problem, &plan), ElementsAre("b*1 q0 s0 1x1 y", "b*4 q3 s1 1x1 y", "a*1 q2 s1 1x4 y",
                                                    "a*1 q2 s1 2x4 y", "a*1 q1 s1 1x4 y", "a*1 q0 s2 1x4 y"));
  ASSERT_EQ(plan.queues.size(), 3u);
  EXPECT_EQ(plan.queues[2].priority, QueueOptions::Priority::high);
}

TEST(Round, BranchesHaveMultiprocessorsForThemselves) {
  const std::string steps =
      "{ concurrent = [\"a\", \"b\"], multiprocessors = { a = \"workload.S\", b = \"12 - workload.S if workload.S else "
      "0\" } }, { concurrent = [\"b\", \"a\"], multiprocessors = { b = 4 } }, { concurrent = [\"a\", \"b\"] }";
  const auto plan_of = [&](const std::string& values) {
    IterationPlan plan;
    launches(problem_with(steps, "parameters = { S = " + values + " }"), &plan);
    return plan.queues;
  };
  const QueueOptions anywhere, first4{.multiprocessors = 4}, next8{.multiprocessors = 8, .first_multiprocessor = 4};
  // The second step's "b" has the part that "a" had in the first; queues that are alike serve again.
  EXPECT_THAT(plan_of("[4]"), ElementsAre(first4, next8, anywhere, anywhere));
  EXPECT_THAT(plan_of("[0]"), ElementsAre(anywhere, anywhere, first4));
  EXPECT_THROW(plan_of("[-1]"), UserError);
  const Problem problem = problem_with(steps, "parameters = { S = [4, 0] }");
  Problem other = problem;
  other.steps[1].steps[0].multiprocessors = Expression::constant(6);
  EXPECT_NE(identity_of(problem), identity_of(other));
  Problem sequence = problem;
  sequence.steps = steps_in_sequence(problem);
  IterationPlan plan;
  launches(sequence, &plan);
  EXPECT_THAT(plan.queues, IsEmpty());
}

TEST(Round, OneThatNeverEndsIsRefused) {
  const auto refused = [](const std::string& steps) {
    return error_of([&] { launches(problem_with(steps + ", { kernel = \"b\" }")); }, "no error");
  };
  EXPECT_THAT(refused("{ for = \"k\", to = 2, by = \"T - 1\", steps = [{ kernel = \"a\" }] }"),
              HasSubstr("never ends"));
  EXPECT_THAT(refused("{ kernel = \"a\", launches = \"2000000 * T\" }"), HasSubstr("more than 1000000 launches"));
  EXPECT_THAT(refused("{ for = \"k\", to = \"T * 10000\", steps = [{ for = \"j\", to = \"T * 10000\", steps = [{ "
                      "kernel = \"a\", launches = 0 }] }] }"),
              HasSubstr("never ends"));
}

TEST(Round, DeclaredRacesAreReported) {
  EXPECT_THAT(race_notes(problem_with("{ concurrent = [\"a\", \"b\"] }")), ElementsAre(HasSubstr("\"y\"")));
  EXPECT_THAT(race_notes(problem_with("{ kernel = \"a\" }, { kernel = \"b\" }")), IsEmpty());
}

TEST(Round, AKernelsCodeDependsOnWhatItSees) {
  const Problem problem = problem_with("{ kernel = \"a\" }, { kernel = \"b\" }");
  const auto names = [&](std::size_t kernel) {
    std::vector<std::string> list;
    for (const std::size_t p : code_parameters(problem, problem.kernels[kernel]))
      list.push_back(problem.parameters[p].name);
    return list;
  };
  EXPECT_THAT(names(0), ElementsAre("T", "a.B"));
  EXPECT_THAT(names(1), ElementsAre("T", "b.B"));
  DeviceInfo device;
  device.backend = "opencl";
  const CompileJob job =
      make_compile_job(problem, problem.kernels[1], device, problem.constants, {Value(2), Value(4), Value(3)});
  EXPECT_EQ(job.function, "b_3");
  using Define = std::pair<std::string, std::string>;
  EXPECT_THAT(job.defines, ElementsAre(Define("T", "2"), Define("B", "3"), Define("N", "8")));
}

TEST(Steps, GivenInJsonAreThoseOfTheFile) {
  const Problem read = problem_with(
      "{ for = \"k\", to = \"N\", steps = [{ kernel = \"a\", launches = 2 }] }, { concurrent = [\"a\", \"b\"] }");
  Problem built = read;
  built.steps = steps_from(built, R"([{"for": "k", "to": "N", "steps": [{"kernel": "a", "launches": 2}]},
                                      {"concurrent": ["a", "b"]}])");
  EXPECT_EQ(launches(built), launches(read));
  EXPECT_THROW(steps_from(built, R"([{"kernel": "c"}])"), UserError);
  EXPECT_THROW(steps_from(built, R"([{"concurrent": ["a", "a"]}])"), UserError);
  Problem apart = read;
  apart.steps = steps_in_sequence(read);
  IterationPlan plan;
  launches(apart, &plan);
  EXPECT_TRUE(plan.queues.empty());
  apart.steps = steps_alone(read, 1);
  EXPECT_THAT(launches(apart), ElementsAre(testing::StartsWith("b*1 q0")));
}

}  // namespace
}  // namespace ergotune
