// What outputs are compared with, and what is said of them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/fake_device.hpp"
#include "measure/runner_fixture.hpp"
#include "measure/verify/output_check.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// b = 2 a, and what else a test makes of it.
struct Outputs : RunnerTest {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  void after_64(const std::function<void(float*)>& change) {
    device.kernels["double_64"] = [change](const FakeLaunch& launch) {
      right(0)(launch);
      change(launch.buffers[2]->floats());
      return 1e-3;
    };
  }
};

TEST_F(Outputs, MayBeExpectedInFiles) {
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::range, .start = 0, .step = 1};
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = 2 * static_cast<float>(i);
  const auto file = folder / "b.bin";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(expected.data()), 4 * kCount);
  problem.verification.kind = Verification::Kind::files;
  problem.verification.files["b"] = file;
  after_64([](float* b) { b[3] = 0; });
  Runner runner(device, problem, options);
  EXPECT_TRUE(runner.has_reference());
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_THAT(measure(runner, 64).message,
              StartsWith("output \"b\": 1 of 256 elements differ, the first at 3: 0 instead of 6"));
  problem.verification.files["bb"] = file;
  EXPECT_THAT(error_of([&] { const Runner other(device, problem, options); }),
              AllOf(HasSubstr("\"bb\""), HasSubstr("\"b\"")));
}

// Without a reference, a kernel that writes nothing agrees with itself.
TEST_F(Outputs, ThatNothingChangesAreNoted) {
  for (const int block : {32, 64})
    device.kernels["double_" + std::to_string(block)] = [](const FakeLaunch&) { return 1e-3; };
  Runner runner(device, problem, options);
  for (const int block : {32, 64}) {
    const Measurement measured = measure(runner, block);
    EXPECT_EQ(measured.status, Status::ok);
    EXPECT_THAT(measured.warnings, testing::Contains(HasSubstr("\"b\""))) << block;
  }
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::range, .start = 1, .step = 1};
  device.kernels["double_32"] = right(1e-3);
  EXPECT_THAT(measure(32).warnings, testing::Not(testing::Contains(HasSubstr("\"b\""))));
}

// A grid that is too small agrees with itself.
TEST_F(Outputs, ThatAreWrittenInPartAreNoted) {
  device.kernels["double_32"] = [](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount / 2; ++i) launch.buffers[2]->floats()[i] = 2 * launch.buffers[1]->floats()[i];
    return 1e-3;
  };
  EXPECT_THAT(measure(32).warnings, testing::Contains(AllOf(HasSubstr("128"), HasSubstr("\"b\""))));
  EXPECT_THAT(measure(64).warnings, testing::IsEmpty());
}

// An iteration to convergence has nothing left to do on its result.
TEST_F(Outputs, ThatAKernelReadsAreRestoredBeforeEachTimedLaunch) {
  device.kernels["double_32"] = [](const FakeLaunch& launch) {
    float* const b = launch.buffers[2]->floats();
    const bool converged = b[0] > 7;
    for (std::size_t i = 0; i < kCount; ++i) b[i] = 8 + (b[i] - 8) * 1e-5f;
    return converged ? 1e-6 : 1e-3;
  };
  problem.kernel().arguments[2].fill = {.kind = Fill::Kind::constant, .start = 0};
  Runner runner(device, problem, options);
  for (int i = 0; i < 2; ++i) {
    const Measurement measured = measure(runner, 32);
    EXPECT_NEAR(measured.quantities.at("time").value, 1e-3, 1e-5);
    EXPECT_THAT(measured.warnings, testing::Contains(HasSubstr("\"b\"")));
  }
}

TEST_F(Outputs, ThatOnlyALaterConfigurationReadsAreFoundAsWell) {
  device.kernels["double_64"] = [](const FakeLaunch& launch) {
    const bool done = launch.buffers[2]->floats()[0] != 0;
    return done ? 1e-6 : right(1e-3)(launch);
  };
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::range, .start = 1, .step = 1};
  problem.kernel().arguments[2].fill = {.kind = Fill::Kind::constant, .start = 0};
  Runner runner(device, problem, options);
  EXPECT_THAT(measure(runner, 32).warnings, testing::IsEmpty());
  const Measurement measured = measure(runner, 64);
  EXPECT_NEAR(measured.quantities.at("time").value, 1e-3, 1e-5);
  EXPECT_THAT(measured.warnings, testing::Contains(HasSubstr("\"b\"")));
}

// As atomics do it: an update that is skipped where a larger value is there.
TEST_F(Outputs, ThatHoldAMaximumAreRestoredBeforeEachTimedLaunch) {
  device.kernels["double_32"] = [](const FakeLaunch& launch) {
    bool updated = false;
    for (std::size_t i = 0; i < kCount; ++i) {
      float& most = launch.buffers[2]->floats()[i];
      const float value = 2 * launch.buffers[1]->floats()[i];
      if (value > most) most = value, updated = true;
    }
    return updated ? 1e-3 : 1e-6;
  };
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::range, .start = 5, .step = 1};
  problem.kernel().arguments[2].fill = {.kind = Fill::Kind::constant, .start = 0};
  const Measurement measured = measure(32);
  EXPECT_NEAR(measured.quantities.at("time").value, 1e-3, 1e-5);
  EXPECT_THAT(measured.warnings, testing::Contains(HasSubstr("\"b\"")));
}

TEST_F(Outputs, ThatOnlyTheFirstLaunchWritesAreWrong) {
  bool done = false;
  device.kernels["double_64"] = [&done](const FakeLaunch& launch) {
    return std::exchange(done, true) ? 1e-6 : right(1e-3)(launch);
  };
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(measure(runner, 64).status, Status::wrong_result);
}

// A function that copies what it remembers writes as much as one that computes it.
TEST_F(Outputs, OfAFunctionThatIsFarFasterAfterItsFirstCallAreNoted) {
  device.device_info.backend = "host";
  problem.kernel().sources[0].language = Language::cpp;
  bool known = false;
  device.kernels["double_32"] = [&known](const FakeLaunch& launch) {
    right(0)(launch);
    return std::exchange(known, true) ? 1e-5 : 2e-3;
  };
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::range, .start = 1, .step = 1};
  EXPECT_THAT(measure(32).warnings, testing::SizeIs(1));
  EXPECT_THAT(measure(64).warnings, testing::IsEmpty());
}

// A count that is too small agrees with itself.
TEST_F(Outputs, ThatDependOnMemoryOutsideOfTheBuffersAreWrong) {
  device.kernels["double_32"] = [](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[2]->floats()[i] = 2 * launch.buffers[1]->floats()[i + 1];
    return 1e-3;
  };
  const Measurement measured = measure(32);
  EXPECT_EQ(measured.status, Status::wrong_result);
  EXPECT_THAT(measured.message, AllOf(HasSubstr("\"b\""), HasSubstr("outside")));
}

TEST_F(Outputs, OfARandomKernelAreNotedAndNotTakenForInputs) {
  float next = 0;
  device.kernels["double_32"] = [&next](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[2]->floats()[i] = ++next;
    return 1e-3;
  };
  const Measurement measured = measure(32);
  EXPECT_THAT(measured.warnings, testing::ElementsAre(HasSubstr("launch to launch")));
  EXPECT_EQ(measured.quantities.at("time").method.find("reset"), std::string::npos);
}

TEST_F(Outputs, OfAnotherProblemAreNoReference) {
  options.reference_file = folder / "reference";
  measure(32);
  problem.kernel().arguments[2].name = "c";
  EXPECT_FALSE(Runner(device, problem, options).has_reference());
  EXPECT_EQ(measure(32).status, Status::ok);
}

TEST_F(Outputs, ThatDependOnTheConfigurationAreKnownOneAfterTheOther) {
  // b where blocks are 32, c where they are 64
  auto c = problem.kernel().arguments[2];
  c.name = "c";
  problem.kernel().arguments[2].when = Expression::parse("block_size_x == 32");
  c.when = Expression::parse("block_size_x == 64");
  problem.kernel().arguments.push_back(c);
  options.reference_file = folder / "reference";
  Runner one(device, problem, options), other(device, problem, options);
  EXPECT_EQ(measure(one, 32).status, Status::ok);
  EXPECT_EQ(measure(other, 64).status, Status::ok) << "it had begun before there was a file";
  for (const int block : {32, 64})
    device.kernels["double_" + std::to_string(block)] = [](const FakeLaunch&) { return 1e-3; };
  Runner later(device, problem, options);
  EXPECT_THAT(measure(later, 32).message, StartsWith("output \"b\""));
  EXPECT_THAT(measure(later, 64).message, StartsWith("output \"c\""));
}

TEST_F(Outputs, ThoseThatAreRequestedForAreCompared) {
  auto c = problem.kernel().arguments[2];
  c.name = "c";
  problem.kernel().arguments.push_back(c);
  device.kernels["double_64"] = [](const FakeLaunch& launch) {
    right(0)(launch);
    launch.buffers[3]->floats()[5] = -3;
    return 1e-3;
  };
  const auto message = [&] {
    Runner runner(device, problem, options);
    EXPECT_EQ(measure(runner, 32).status, Status::ok);
    return measure(runner, 64).message;
  };
  EXPECT_THAT(message(), StartsWith("output \"c\": 1 of 256"));
  problem.verification.outputs = {"b"};
  EXPECT_EQ(message(), "");
  problem.verification.outputs = {"c"};
  EXPECT_THAT(message(), StartsWith("output \"c\""));
  problem.verification.outputs.clear();
  device.kernels["double_64"] = [](const FakeLaunch& launch) {
    launch.buffers[3]->floats()[5] = -3;
    return 1e-3;
  };
  EXPECT_THAT(message(), AllOf(StartsWith("output \"b\": 2"), HasSubstr("; output \"c\": 1 of 256")))
      << "all that are wrong";
}

TEST_F(Outputs, HaveTheirLargestErrorNoted) {
  problem.verification.relative_tolerance = 0.5;
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::constant, .value = 1};
  after_64([](float* b) { b[3] = 2.5; });
  Runner runner(device, problem, options);
  measure(runner, 32);
  const Measurement m = measure(runner, 64);
  EXPECT_EQ(m.status, Status::ok);
  const Quantity& error = m.quantities.at("error");
  EXPECT_DOUBLE_EQ(error.value, 0.25);
  EXPECT_EQ(error.standard_error, 0);
  EXPECT_EQ(error.n, 1);
  EXPECT_THAT(error.method, HasSubstr("no reference")) << "the first configuration may be wrong as well";
  after_64([](float* b) { b[3] = std::nanf(""); });
  EXPECT_FALSE(measure(runner, 64).quantities.contains("error")) << "what is no number has none";
  after_64([](float*) {});
  problem.verification.compare["b"] = Compare::sum;
  EXPECT_THAT(measure(64).quantities.at("error").method, HasSubstr("sum")) << "its elements are not compared";
}

// A reference on the host for results of another device: the constants of that device hold, not the host's.
TEST(References, RunOnTheHostWithTheConstantsOfTheMeasuredDevice) {
  const Problem problem = parse_problem(R"(
name = "constants by device"
[constants]
N = 4
[constants_for."fake device"]
N = 8
[parameters]
block = [1]
[kernel]
function = "fill"
source.opencl.text = "__kernel void fill(__global float *y) {}"
arguments = [ { name = "y", type = "float32", count = "N", access = "write" } ]
[kernel.launch]
global = ["N"]
block = ["block"]
[verification.host_function]
function = "fill_reference"
source.c.text = "void fill_reference(float *y) { for (int i = 0; i < N; ++i) y[i] = N; }"
)",
                                        "problem.toml");
  test::FakeDevice device;
  const Constants constants = problem.constants_for(device.info().name, device.info().properties);
  const ProblemBuffers buffers(device, argument_lists(problem), constants);
  const auto outputs = expected_outputs(problem, device, buffers);
  ASSERT_TRUE(outputs);
  ASSERT_EQ(outputs->at("y").size(), 8 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(outputs->at("y").data())[7], 8.0f);
}

}  // namespace
}  // namespace ergotune
