// Rounds of several kernels in the runner, on the fake device: outputs, swaps, races, failures, times in the mix.
#include "measure/several_kernels.hpp"
#include "device/entries.hpp"
#include "measure/timing/loaded_iteration.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(SeveralKernels, TheRoundIsTheUnitAndKernelsHaveTimesOfTheirOwn) {
  const Measurement result = measure(two_kernels("{ kernel = \"twice\", launches = 3 }, { kernel = \"third\" }"));
  ASSERT_EQ(result.status, Status::ok) << result.message;
  EXPECT_NEAR(result.quantities.at("time").value, 7e-3, 1e-9);
  EXPECT_NEAR(result.quantities.at("time.twice").value, 6e-3, 1e-9);
  EXPECT_NEAR(result.quantities.at("time.third").value, 1e-3, 1e-9);
  EXPECT_NEAR(result.quantities.at("overlap").value, 0, 1e-9);
  // 16 blocks of one warp fill a quarter of 64 warps
  EXPECT_DOUBLE_EQ(result.quantities.at("occupancy.twice").value, 0.25);
}

TEST_F(SeveralKernels, ScalarsOfALoopAndSwapsReachTheKernels) {
  Problem problem = two_kernels(
      "{ for = \"k\", to = 3, steps = [{ kernel = \"twice\" }, { swap = [\"x\", \"y\"] }] }, { kernel = \"third\" }");
  std::vector<float> x, z;
  Runner runner(device, problem, options);
  runner.set_verifier([&](const std::vector<OutputView>& outputs, std::string&, double&) {
    for (const OutputView& view : outputs) {
      const auto* floats = reinterpret_cast<const float*>(view.actual.data());
      (view.argument->name == "x" ? x : z).assign(floats, floats + kCount);
    }
    return true;
  });
  ASSERT_EQ(measure(runner, 32, 32).status, Status::ok);
  // x -> 2x + 0 -> 2(2x) + 1 -> 2(4x + 1) + 2: three swaps, so that it is called x in the end; y is then what came
  // before.
  EXPECT_EQ(x[5], 8 * 5 + 4);
  EXPECT_EQ(z[5], 3 * (4 * 5 + 1));
}

TEST_F(SeveralKernels, ARaceIsAWrongResultThatSaysSo) {
  // Side by side "third" may read what "twice" has not written yet: on the fake device it comes first there.
  const Measurement result =
      measure(two_kernels("{ concurrent = [\"twice\", \"third\"], order = [\"third\", \"twice\"] }"));
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message, StartsWith("a race: in sequence the same kernels are right"));
  EXPECT_THAT(result.message, HasSubstr("output \"z\""));
  // In the order in which it is right, it stays right.
  EXPECT_EQ(measure(two_kernels("{ concurrent = [\"twice\", \"third\"] }")).status, Status::ok);
}

TEST_F(SeveralKernels, WhatIsWrongInSequenceTooIsNoRace) {
  const Problem problem = two_kernels("{ concurrent = [\"twice\", \"third\"] }");
  Runner runner(device, problem, options);
  ASSERT_EQ(measure(runner, 32, 32).status, Status::ok);
  wrong = 1;
  const Measurement result = measure(runner, 64, 32);
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message, StartsWith("output \"y\""));
  EXPECT_FALSE(result.quantities.contains("time"));
}

TEST_F(SeveralKernels, WhatWritesOutsideInSequenceIsNotMeasured) {
  device.kernels["third_32"] = [](const FakeLaunch& launch) {
    launch.buffers[1]->floats()[kCount] = 1;
    return 1e-3;
  };
  const Measurement result = measure(two_kernels("{ concurrent = [\"twice\", \"third\"] }"));
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message, HasSubstr("\"z\" is written outside"));
  EXPECT_FALSE(result.quantities.contains("time"));
}

TEST_F(SeveralKernels, OverlapIsTheShareOfTheTimeInWhichTwoRun) {
  const auto overlap = [&](const char* steps) {
    const Measurement result = measure(two_kernels(steps));
    EXPECT_EQ(result.status, Status::ok) << result.message;
    return result.quantities.at("overlap").value;
  };
  // 2 ms beside 1 ms
  EXPECT_NEAR(overlap("{ concurrent = [\"twice\", \"third\"] }"), 0.5, 1e-9);
  // 2 ms beside 2 ms, then 3 ms alone
  EXPECT_NEAR(overlap("{ concurrent = [\"twice\", { name = \"more\", steps = [{ kernel = \"third\", launches = 2 }] }] "
                      "}, { kernel = \"third\", launches = 3 }"),
              0.4, 1e-9);
  device.kernels["twice_32"] = device.kernels["third_32"] = [](const FakeLaunch&) { return 1e-3; };
  EXPECT_NEAR(overlap("{ concurrent = [\"twice\", \"third\"] }"), 1, 1e-9);
}

TEST_F(SeveralKernels, ResourcesAreTheMostThatAnyKernelNeeds) {
  device.needs["twice_32"] = {10, 2000, 30, 512, 4};
  device.needs["third_32"] = {20, 1000, 60, 1024, 2};
  const Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  Measurement result = measure(problem);
  const auto value = [&](const char* name) { return result.value(name).value_or(-1); };
  EXPECT_EQ(value("registers"), 20);
  EXPECT_EQ(value("shared_bytes"), 2000);
  EXPECT_EQ(value("local_bytes"), 60);
  EXPECT_EQ(value("spilled_registers"), 4);
  EXPECT_EQ(result.quantities.at("registers").n, 1);
  EXPECT_EQ(result.quantities.at("registers").standard_error, 0);
  EXPECT_EQ(result.quantities.at("occupancy.twice").n, 1);
  EXPECT_EQ(result.quantities.at("occupancy.twice").standard_error, 0);
  device.needs["twice_32"] = device.needs["third_32"] = {0, -1, 0, 1024, -1};
  result = measure(problem);
  EXPECT_EQ(value("registers"), 0);
  EXPECT_FALSE(result.quantities.contains("shared_bytes")) << "nobody tells";
  EXPECT_FALSE(result.quantities.contains("spilled_registers"));
}

TEST_F(SeveralKernels, AFailureNamesItsKernel) {
  const Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  device.kernels["third_32"] = [](const FakeLaunch&) -> double { throw DeviceError(DeviceFault::launch, "too large"); };
  Measurement result = measure(problem);
  EXPECT_EQ(result.status, Status::launch_error);
  EXPECT_EQ(result.message, "kernel \"third\": too large");
  device.kernels.erase("third_32");
  result = measure(problem);
  EXPECT_EQ(result.status, Status::launch_error);
  EXPECT_THAT(result.message, StartsWith("kernel \"third\": no such function"));
}

TEST_F(SeveralKernels, OnlyResourcesAreRequestedForWithoutALaunch) {
  const Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  Runner runner(device, problem, options);
  RunOptions only;
  only.resources_only = true;
  const Measurement result = measure(runner, 64, 32, only);
  EXPECT_EQ(device.launches, 0u);
  EXPECT_DOUBLE_EQ(result.quantities.at("occupancy.twice").value, 0.5);
  EXPECT_FALSE(result.quantities.contains("time"));
}

TEST_F(SeveralKernels, InstructionsOfAllKernelsAreAddedWhereAllTell) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  const auto counted = [](double fma) { return device::PackedCode{"code", {{"static_fma", fma}}, "SASS"}.pack(); };
  problem.kernels[0].sources[0].text = counted(5);
  problem.kernels[1].sources[0].text = counted(7);
  const Measurement result = measure(problem);
  const Quantity& fma = result.quantities.at("static_fma");
  EXPECT_EQ(fma.value, 12);
  EXPECT_EQ(fma.standard_error, 0);
  EXPECT_EQ(fma.n, 1);
  EXPECT_EQ(fma.method, "counted in SASS");
  problem.kernels[1].sources[0].text = "code";
  EXPECT_FALSE(measure(problem).quantities.contains("static_fma"));
}

TEST_F(SeveralKernels, AKernelIsHeldAgainstItsReferenceOnWhatItReadsInTheRound) {
  Problem problem = two_kernels("{ kernel = \"twice\", launches = 2 }, { kernel = \"third\", launches = 3 }");
  problem.kernels[1].verification = beside("reference", problem.kernels[1]);
  int references = 0;
  device.kernels["reference"] = [&](const FakeLaunch& launch) {
    ++references;
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[1]->floats()[i] = 3 * launch.buffers[0]->floats()[i];
    return 1e-3;
  };
  Runner runner(device, problem, options);
  Measurement result = measure(runner, 32, 32);
  EXPECT_EQ(result.status, Status::ok) << result.message;
  EXPECT_DOUBLE_EQ(result.quantities.at("error").value, 0);
  EXPECT_EQ(measure(runner, 64, 64).status, Status::ok);
  EXPECT_EQ(references, 1);  // the same contents and scalars
  // Wrong only where "twice" has been before it: on the zeros that y begins with it is right.
  device.kernels["third_32"] = [](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i)
      launch.buffers[1]->floats()[i] =
          3 * launch.buffers[0]->floats()[i] * (launch.buffers[0]->floats()[i] > 0 ? 1.5f : 1.0f);
    return 1e-3;
  };
  result = measure(runner, 64, 32);
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message,
              StartsWith("kernel \"third\" beside its reference: output \"z\": 255 of 256 elements differ"));
  EXPECT_FALSE(result.quantities.contains("time"));
}

TEST_F(SeveralKernels, AWrongKernelNeverBecomesWhatOthersAreComparedWith) {
  Problem problem = two_kernels("{ concurrent = [\"twice\", \"third\"] }");
  problem.kernels[0].verification = beside("reference", problem.kernels[0]);
  device.kernels["reference"] = device.kernels["twice_32"];
  device.kernels["twice_64"] = [](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[1]->floats()[i] = 7;
    return 1e-3;
  };
  Runner runner(device, problem, options);
  EXPECT_EQ(measure(runner, 64, 32).status, Status::wrong_result);
  EXPECT_FALSE(runner.has_reference());
  EXPECT_EQ(measure(runner, 32, 32).status, Status::ok);
}

TEST_F(SeveralKernels, AReferenceHasTheScalarsAndBuffersOfTheFirstLaunch) {
  Problem problem = two_kernels(
      "{ swap = [\"x\", \"y\"] }, { swap = [\"x\", \"y\"] }, { for = \"k\", from = 5, to = 7, steps = [{ kernel = "
      "\"twice\" }] }, { kernel = \"third\" }");
  problem.kernels[0].verification = beside("reference", problem.kernels[0]);
  int add = 0;
  device.kernels["reference"] = [&](const FakeLaunch& launch) {
    std::memcpy(&add, launch.scalars[2].data(), sizeof add);
    return device.kernels["twice_32"](launch);
  };
  EXPECT_EQ(measure(problem).status, Status::ok);
  EXPECT_EQ(add, 5);
}

TEST_F(SeveralKernels, AReferenceIsRunAgainWhereItsScalarsAreOthers) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.kernels[0].arguments[2].value = Expression::parse("B");
  problem.kernels[0].verification = beside("reference", problem.kernels[0]);
  problem.verification.kind = Verification::Kind::none;
  device.kernels["reference"] = device.kernels["twice_32"];
  Runner runner(device, problem, options);
  for (const int block : {32, 64, 32}) EXPECT_EQ(measure(runner, block, 32).message, "") << block;
}

TEST_F(SeveralKernels, AReferenceOfAKernelMayRunOnTheHost) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  for (const char* right : {"3", "4"}) {
    auto verification = beside("on_host", problem.kernels[1]);
    verification->kind = Verification::Kind::host_function;
    auto reference = std::make_shared<Kernel>(*verification->reference);
    reference->sources = {
        {Language::c,
         {},
         fmt::format("void on_host(const float *y, float *z) {{ for (int i = 0; i < 256; ++i) z[i] = {} * y[i]; }}",
                     right),
         {}}};
    verification->reference = reference;
    problem.kernels[1].verification = verification;
    EXPECT_EQ(measure(problem).status, std::string(right) == "3" ? Status::ok : Status::wrong_result) << right;
  }
}

}  // namespace

}  // namespace ergotune::test
