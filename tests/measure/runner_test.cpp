#include "measure/runner.hpp"
#include "ergotune/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/runner_fixture.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RunnerTest, TimeHasValueErrorCountAndMethod) {
  Random random(5);
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    return 1e-3 * (1 + 0.005 * random.normal());
  };
  const Measurement m = measure(32);
  ASSERT_EQ(m.status, Status::ok) << m.message;
  const Quantity& time = m.quantities.at("time");
  EXPECT_NEAR(time.value, 1e-3, 1e-5);
  EXPECT_GT(time.standard_error, 0);
  EXPECT_LT(time.standard_error, 1e-5);
  EXPECT_GE(time.n, 7);
  EXPECT_THAT(time.method, HasSubstr("device events"));
  EXPECT_EQ(m.times.size(), static_cast<std::size_t>(time.n));
  EXPECT_EQ(m.quantities.at("registers").value, 24);
  EXPECT_EQ(m.quantities.at("error").value, 0);
  EXPECT_FALSE(m.quantities.contains("overlap")) << "of a single kernel there is no mix";
}

TEST_F(RunnerTest, RepeatsUntilTheIntervalIsNarrowEnough) {
  Random random(5);
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    return 1e-3 * (1 + 0.05 * random.normal());
  };
  options.max_seconds = 10;
  const Measurement m = measure(32);
  ASSERT_EQ(m.status, Status::ok);
  // sigma / sqrt(n) * 1.96 = 1 % asks for about 100 samples.
  EXPECT_GT(m.quantities.at("time").n, 40);
  EXPECT_LT(m.quantities.at("time").n, 400);
}

TEST_F(RunnerTest, NoiseBeyondTheCapIsNotConvergedWithItsValueKept) {
  Random random(5);
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    return 1e-3 * (0.5 + random.uniform());
  };
  options.max_repeats = 20;
  const Measurement m = measure(32);
  EXPECT_EQ(m.status, Status::not_converged);
  EXPECT_NEAR(m.value("time").value(), 1e-3, 3e-4);
  EXPECT_EQ(m.quantities.at("time").n, 20);
  EXPECT_THAT(m.message, HasSubstr("1 % was asked"));
}

TEST_F(RunnerTest, AGpuThatSlowsDownUnderALastingLoadIsTimedAfterwardsIfThatIsAsked) {
  device.kernels["double_32"] = [this](const FakeLaunch& launch) {
    return right(device.launches < 300 ? 1e-3 : 1.2e-3)(launch);
  };
  Runner runner(device, problem, options);
  EXPECT_NEAR(measure(runner, 32).quantities["time"].value, 1e-3, 1e-9);
  EXPECT_NEAR(measure(runner, 32, {.settle_seconds = 0.05}).quantities["time"].value, 1.2e-3, 1e-9);
}

TEST_F(RunnerTest, AGpuSettlesForAtLeastHalfTheTimeAndForAllOfItAfterARest) {
  Runner runner(device, problem, options);
  const auto seconds = [&] {
    const double began = host_seconds();
    measure(runner, 32, {.settle_seconds = 0.05});
    return host_seconds() - began;
  };
  EXPECT_GE(seconds(), 0.05);
  EXPECT_GE(seconds(), 0.025) << "it was under load just before";
  const double loaded = seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * loaded));
  EXPECT_GE(seconds(), 0.05);
}

TEST_F(RunnerTest, ColdCacheFlushesBeforeEverySample) {
  options.cold_cache = true;
  device.kernels["double_32"] = right(1e-6);
  const Measurement m = measure(32);
  EXPECT_EQ(static_cast<std::int64_t>(device.fills), m.quantities.at("time").n);
  EXPECT_NEAR(m.value("time").value(), 1e-6, 1e-12);
}

TEST_F(RunnerTest, AnInputThatIsChangedIsTheFaultOfTheConfigurationThatChangesIt) {
  device.kernels["double_32"] = [](const FakeLaunch& launch) {
    right(0)(launch);
    launch.buffers[1]->floats()[5] = 7;
    return 1e-3;
  };
  Runner runner(device, problem, options);
  const Measurement guilty = measure(runner, 32);
  EXPECT_EQ(guilty.status, Status::wrong_result);
  EXPECT_THAT(guilty.message, HasSubstr("\"a\""));
  EXPECT_FALSE(guilty.value("time"));
  EXPECT_EQ(measure(runner, 64).status, Status::ok) << "the next one has its inputs anew";
}

TEST_F(RunnerTest, AnInputThatOnlyALaterLaunchChangesIsFoundAsWell) {
  int launches = 0;
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    right(0)(launch);
    if (++launches == 5) launch.buffers[1]->floats()[5] = 7;
    return 1e-3;
  };
  Runner runner(device, problem, options);
  const Measurement guilty = measure(runner, 32);
  EXPECT_EQ(guilty.status, Status::wrong_result);
  EXPECT_FALSE(guilty.value("time"));
  EXPECT_TRUE(guilty.times.empty());
  EXPECT_EQ(measure(runner, 64).status, Status::ok);
}

TEST_F(RunnerTest, AKernelWithoutDeclaredOutputsMayChangeNothing) {
  problem.kernel().arguments[2].access = Access::read;
  EXPECT_EQ(measure(32).status, Status::wrong_result);
  problem.verification.kind = Verification::Kind::none;
  EXPECT_EQ(measure(32).status, Status::ok);
}

TEST_F(RunnerTest, WrongOutputAgainstTheFirstCorrectOne) {
  device.kernels["double_64"] = [](const FakeLaunch& launch) {
    right(0)(launch);
    launch.buffers[2]->floats()[17] += 1;
    return 1e-3;
  };
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  const Measurement wrong = measure(runner, 64);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_THAT(wrong.message, HasSubstr("output \"b\": 1 of 256 elements differ, the first at 17"));
  EXPECT_FALSE(wrong.value("time"));
  EXPECT_GT(wrong.value("error").value(), 0.1);
}

TEST_F(RunnerTest, ElementsThatAreNoNumbersVerifyNothing) {
  std::size_t strange = 3;
  for (const char* name : {"double_32", "double_64"})
    device.kernels[name] = [&](const FakeLaunch& launch) {
      for (std::size_t i = 0; i < kCount; ++i)
        launch.buffers[2]->floats()[i] = i >= strange ? 1 : i % 2 == 0 ? NAN : INFINITY;
      return 1e-3;
    };
  Runner some(device, problem, options);
  for (const int block : {32, 64}) {
    const Measurement result = measure(some, block);
    EXPECT_EQ(result.status, Status::ok) << result.message;
    EXPECT_THAT(result.warnings, testing::ElementsAre(HasSubstr("3 of the 256 elements")));
    EXPECT_TRUE(result.quantities.contains("error"));
  }
  strange = kCount;
  Runner all(device, problem, options);
  const Measurement result = measure(all, 32);
  EXPECT_THAT(result.warnings, testing::ElementsAre(HasSubstr("256 of the 256 elements")));
  EXPECT_FALSE(result.quantities.contains("error")) << "nothing is verified";
}

TEST_F(RunnerTest, AKernelThatWritesNothingIsWrongBecauseOutputsAreRestored) {
  device.kernels["double_64"] = [](const FakeLaunch&) { return 1e-3; };
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(measure(runner, 64).status, Status::wrong_result);
}

TEST_F(RunnerTest, InOutBuffersAreRestoredForVerificationAndTiming) {
  problem.kernel().arguments[2].access = Access::read_write;
  float largest = 0;
  device.kernels["double_32"] = [&](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) {
      float& x = launch.buffers[2]->floats()[i];
      x = x * 2;
      largest = std::max(largest, std::abs(x));
    }
    return 1e-3;
  };
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_LT(largest, 4096) << "without restoring, 20 launches double 20 times";
}

/// A kernel that finds its work done where an earlier launch has done it, as a sort does; seconds for both.
FakeKernel in_place(double fresh, double done) {
  return [=](const FakeLaunch& launch) {
    float& first = launch.buffers[2]->floats()[0];
    return std::exchange(first, 2.0f) == 2 ? done : fresh;
  };
}

TEST_F(RunnerTest, AKernelThatWorksInPlaceIsTimedOnItsInputs) {
  problem.kernel().arguments[2].access = Access::read_write;
  device.kernels["double_32"] = in_place(8e-3, 5e-4);
  device.kernels["double_64"] = in_place(5e-5, 5e-6);
  device.kernels["double_128"] = in_place(6e-6, 5e-6);
  problem.verification.kind = Verification::Kind::none;
  Runner runner(device, problem, options);
  EXPECT_NEAR(measure(runner, 32).quantities["time"].value, 8e-3, 1e-6);
  EXPECT_NEAR(measure(runner, 64).quantities["time"].value, 5e-5, 1e-8);
  const double shared = measure(runner, 128).quantities["time"].value;
  EXPECT_LT(shared, 5.3e-6) << "where it hardly matters, short launches follow each other";
}

TEST_F(RunnerTest, ReferenceKernel) {
  problem.verification.kind = Verification::Kind::kernel;
  auto reference = std::make_shared<Kernel>(problem.kernel());
  reference->function = Template::parse("reference");
  problem.verification.reference = reference;
  device.kernels["reference"] = right(1);
  device.kernels["double_64"] = [](const FakeLaunch&) { return 1e-3; };
  Runner runner(device, problem, options);
  EXPECT_TRUE(runner.has_reference());
  EXPECT_EQ(measure(runner, 64).status, Status::wrong_result);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
}

TEST_F(RunnerTest, AReferenceThatFollowsTheConfigurationRunsOnceForTheParametersThatItSees) {
  int runs = 0;
  for (const char* name : {"reference", "reference_32", "reference_64"})
    device.kernels[name] = [&runs, name](const FakeLaunch& launch) {
      ++runs;
      right(0)(launch);
      if (name == std::string("reference_64")) launch.buffers[2]->floats()[0] = -1;
      return 1.0;
    };
  problem.verification.kind = Verification::Kind::kernel;
  problem.verification.per_configuration = true;
  const auto reference = std::make_shared<Kernel>(problem.kernel());
  problem.verification.reference = reference;
  reference->launch.block = {Expression::parse("32")};
  const auto statuses = [&](const char* function) {
    reference->function = Template::parse(function);
    runs = 0;
    Runner runner(device, problem, options);
    std::vector<Status> found;
    for (const int block : {32, 64, 32, 64}) found.push_back(measure(runner, block).status);
    return found;
  };
  EXPECT_THAT(statuses("reference"), ::testing::Each(Status::ok));
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(statuses("reference_{{block_size_x}}"),
              ElementsAre(Status::ok, Status::wrong_result, Status::ok, Status::wrong_result));
  EXPECT_EQ(runs, 2);
}

TEST_F(RunnerTest, AReferenceThatDoesNotRunIsTheUsersMistake) {
  problem.verification.kind = Verification::Kind::kernel;
  auto reference = std::make_shared<Kernel>(problem.kernel());
  reference->function = Template::parse("missing");
  problem.verification.reference = reference;
  EXPECT_THROW(Runner(device, problem, options), UserError);
}

TEST_F(RunnerTest, UsersOwnVerification) {
  Runner runner(device, problem, options);
  runner.set_verifier([](const std::vector<OutputView>& outputs, std::string& message, double& error) {
    EXPECT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].argument->name, "b");
    message = "not to my liking";
    error = 0.25;
    return false;
  });
  const Measurement m = measure(runner, 32);
  EXPECT_EQ(m.status, Status::wrong_result);
  EXPECT_EQ(m.message, "not to my liking");
  EXPECT_EQ(m.value("error"), 0.25);
}

TEST_F(RunnerTest, FaultsBecomeStatuses) {
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 128).status, Status::launch_error);  // no such kernel
  EXPECT_TRUE(runner.healthy());
  device.fault = std::make_unique<DeviceError>(DeviceFault::out_of_memory, "too much");
  const Measurement memory = measure(runner, 32);
  EXPECT_EQ(memory.status, Status::launch_error);
  EXPECT_THAT(memory.message, HasSubstr("out of memory"));
  EXPECT_TRUE(runner.healthy());
  device.fault = std::make_unique<DeviceError>(DeviceFault::runtime, "illegal address");
  const Measurement m = measure(runner, 32);
  EXPECT_EQ(m.status, Status::runtime_error);
  EXPECT_EQ(m.message, "illegal address");
  EXPECT_FALSE(runner.healthy());
}

TEST_F(RunnerTest, EveryFaultHasItsStatus) {
  const std::pair<DeviceFault, Status> statuses[] = {{DeviceFault::compile, Status::compile_error},
                                                     {DeviceFault::launch, Status::launch_error},
                                                     {DeviceFault::unsupported, Status::unsupported},
                                                     {DeviceFault::timeout, Status::timeout}};
  for (const auto& [fault, status] : statuses) {
    Runner runner(device, problem, options);
    device.fault = std::make_unique<DeviceError>(fault, "it is so");
    const Measurement m = measure(runner, 32);
    EXPECT_EQ(m.status, status);
    EXPECT_EQ(runner.healthy(), fault != DeviceFault::timeout);
    EXPECT_FALSE(m.value("time"));
  }
}

TEST_F(RunnerTest, WhatIsNoFaultOfTheDevicesIsAFailureOfTheConfiguration) {
  Runner runner(device, problem, options);
  device.kernels["double_32"] = [](const FakeLaunch&) -> double { throw std::bad_alloc(); };
  Measurement m = measure(runner, 32);
  EXPECT_EQ(m.status, Status::launch_error);
  EXPECT_EQ(m.message, "out of memory on the host");
  device.kernels["double_32"] = [](const FakeLaunch&) -> double { throw UserError("no value"); };
  m = measure(runner, 32);
  EXPECT_EQ(m.status, Status::launch_error);
  EXPECT_EQ(m.message, "no value");
  EXPECT_TRUE(runner.healthy());
}

TEST_F(RunnerTest, BuffersThatDoNotFitAreTheUsersMistake) {
  device.memory = 1500;
  EXPECT_THROW(
      {
        try {
          Runner runner(device, problem, options);
        } catch (const UserError& error) {
          EXPECT_THAT(error.what(), HasSubstr("do not fit on fake device"));
          throw;
        }
      },
      UserError);
}

TEST_F(RunnerTest, WithoutRoomForCopiesBuffersAreRestoredFromTheHost) {
  device.memory = 2 * (4 * kCount + GuardedBuffer::kBefore + GuardedBuffer::kBehind);
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 32).status, Status::ok);
  EXPECT_EQ(device.copies, 0u);
  device.kernels["double_64"] = [](const FakeLaunch&) { return 1e-3; };
  EXPECT_EQ(measure(runner, 64).status, Status::wrong_result);
}

TEST_F(RunnerTest, GlobalSizesAreRoundedUpToWholeBlocks) {
  problem.kernel().launch.global = {Expression::parse("n - 1")};
  LaunchGeometry seen;
  device.kernels["double_64"] = [&](const FakeLaunch& launch) {
    seen = launch.geometry;
    return right(1e-3)(launch);
  };
  EXPECT_EQ(measure(64).status, Status::ok);
  EXPECT_EQ(seen.grid[0], 4u);
  EXPECT_EQ(seen.block[0], 64u);
  EXPECT_EQ(seen.grid[1], 1u);
}

TEST_F(RunnerTest, TheFirstCorrectOutputsServeLaterRunners) {
  const TemporaryFolder folder;
  options.reference_file = folder.path() / "reference";
  {
    Runner first(device, problem, options);
    EXPECT_FALSE(first.has_reference());
    RunOptions run;
    run.reference_only = true;
    measure(first, 32, run);
    EXPECT_TRUE(first.has_reference());
  }
  device.kernels["double_64"] = [](const FakeLaunch&) { return 1e-3; };
  Runner second(device, problem, options);
  EXPECT_TRUE(second.has_reference());
  EXPECT_EQ(measure(second, 64).status, Status::wrong_result);
  // A file that was cut short is no reference.
  std::filesystem::resize_file(options.reference_file, 100);
  EXPECT_FALSE(Runner(device, problem, options).has_reference());
}

}  // namespace
}  // namespace ergotune
