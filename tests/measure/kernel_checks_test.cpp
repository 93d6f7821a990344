// Kernels of a round beside references of their own.
#include "measure/several_kernels.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
      launch.buffers[1]->floats()[i] = 3 * launch.buffers[0]->floats()[i] * (launch.buffers[0]->floats()[i] > 0 ? 1.5f : 1.0f);
    return 1e-3;
  };
  result = measure(runner, 64, 32);
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message, StartsWith("kernel \"third\" beside its reference: output \"z\": 255 of 256 elements differ"));
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

TEST_F(SeveralKernels, TheErrorIsTheLargerOneOfKernelsAndOutputs) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.kernels[0].verification = beside("reference", problem.kernels[0]);
  problem.kernels[0].verification->relative_tolerance = problem.verification.relative_tolerance = 0.5;
  problem.kernels[0].verification->absolute_tolerance = problem.verification.absolute_tolerance = 2;
  const auto sound = device.kernels["twice_32"];
  float off = 0;
  device.kernels["reference"] = [&](const FakeLaunch& launch) {
    const double took = sound(launch);
    launch.buffers[1]->floats()[200] += off;
    return took;
  };
  Runner runner(device, problem, options);
  Measurement result = measure(runner, 32, 32);
  EXPECT_EQ(result.status, Status::ok) << result.message;
  EXPECT_EQ(result.quantities.at("error").value, 0);
  EXPECT_EQ(result.quantities.at("error").n, 1);
  EXPECT_TRUE(result.quantities.contains("time"));
  EXPECT_THAT(result.quantities.at("error").method, HasSubstr("of the outputs")) << "one is as good as the other";
  RunOptions only;
  only.reference_only = true;
  result = measure(runner, 32, 32, only);
  EXPECT_THAT(result.quantities.at("error").method, HasSubstr("kernels beside their references")) << "outputs are not compared";
  device.kernels["third_32"] = [](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[1]->floats()[i] = 3.75f * launch.buffers[0]->floats()[i];
    return 1e-3;
  };
  result = measure(runner, 32, 32);
  EXPECT_EQ(result.status, Status::ok) << result.message;
  EXPECT_NEAR(result.quantities.at("error").value, 0.25, 1e-6);
  off = 400;  // of 400
  Runner other(device, problem, options);
  result = measure(other, 32, 32);
  EXPECT_NEAR(result.quantities.at("error").value, 0.5, 1e-6);
  EXPECT_THAT(result.quantities.at("error").method, HasSubstr("kernels beside their references"));
  EXPECT_EQ(result.quantities.at("error").standard_error, 0);
}

TEST_F(SeveralKernels, OutputsThatNobodyVerifiesLeaveTheKernelsVerdict) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  problem.kernels[1].verification = beside("reference", problem.kernels[1]);
  device.kernels["reference"] = device.kernels["third_32"];
  Measurement result = measure(problem);
  EXPECT_EQ(result.status, Status::ok) << result.message;
  EXPECT_NEAR(result.quantities.at("time").value, 3e-3, 1e-9);
  EXPECT_EQ(result.quantities.at("error").n, 1);
  EXPECT_EQ(result.quantities.at("error").standard_error, 0);
  options.verify = false;
  device.kernels["third_32"] = [](const FakeLaunch&) { return 1e-3; };
  result = measure(problem);
  EXPECT_EQ(result.status, Status::ok) << "nothing is verified";
}

TEST_F(SeveralKernels, RightKernelsMayLeaveWrongOutputs) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.kernels[0].verification = beside("reference", problem.kernels[0]);
  device.kernels["reference"] = device.kernels["twice_32"];
  Runner runner(device, problem, options);
  ASSERT_EQ(measure(runner, 32, 32).status, Status::ok);
  device.kernels["third_64"] = [](const FakeLaunch&) { return 1e-3; };
  EXPECT_THAT(measure(runner, 32, 64).message, StartsWith("output \"z\""));
}

TEST_F(SeveralKernels, AReferenceHasTheScalarsAndBuffersOfTheFirstLaunch) {
  Problem problem = two_kernels(
      "{ swap = [\"x\", \"y\"] }, { swap = [\"x\", \"y\"] }, { for = \"k\", from = 5, to = 7, steps = [{ kernel = \"twice\" }] }, "
      "{ kernel = \"third\" }");
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

TEST_F(SeveralKernels, OfAKernelThoseOutputsAreComparedThatAreAskedFor) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  problem.kernels[1].verification = beside("reference", problem.kernels[1]);
  device.kernels["reference"] = [](const FakeLaunch&) { return 1e-3; };
  EXPECT_EQ(measure(problem).status, Status::wrong_result);
  auto other = std::make_shared<Verification>(*problem.kernels[1].verification);
  other->outputs = {"z"};
  problem.kernels[1].verification = other;
  EXPECT_EQ(measure(problem).status, Status::wrong_result);
  other->outputs = {"y"};
  EXPECT_EQ(measure(problem).status, Status::ok);
}

TEST_F(SeveralKernels, AKernelsOutputsMayBeComparedInAnyOrder) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  auto verification = beside("reference", problem.kernels[1]);
  verification->compare["z"] = Compare::sorted;
  problem.kernels[1].verification = verification;
  device.kernels["reference"] = [this](const FakeLaunch& launch) {
    const double took = device.kernels["third_32"](launch);
    std::reverse(launch.buffers[1]->floats(), launch.buffers[1]->floats() + kCount);
    return took;
  };
  EXPECT_EQ(measure(problem).message, "");
}

TEST_F(SeveralKernels, ACheckLaunchesTheWholeRoundAndTheReferenceOnce) {
  options.min_repeats = options.max_repeats = 2;
  const auto launches = [&](bool checked) {
    Problem problem = two_kernels("{ kernel = \"twice\", launches = 2 }, { kernel = \"third\" }");
    if (checked) problem.kernels[0].verification = beside("reference", problem.kernels[0]);
    device.kernels["reference"] = device.kernels["twice_32"];
    device.launches = 0;
    EXPECT_EQ(measure(problem).status, Status::ok);
    return device.launches;
  };
  EXPECT_EQ(launches(true), launches(false) + 3 + 1 + 3) << "kernel by kernel, its reference, and once more for the outputs";
}

TEST_F(SeveralKernels, AReferenceOfAKernelMayRunOnTheHost) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  for (const char* right : {"3", "4"}) {
    auto verification = beside("on_host", problem.kernels[1]);
    verification->kind = Verification::Kind::host_function;
    auto reference = std::make_shared<Kernel>(*verification->reference);
    reference->sources = {{Language::c, {}, fmt::format("void on_host(const float *y, float *z) "
                                                        "{{ for (int i = 0; i < 256; ++i) z[i] = {} * y[i]; }}", right), {}}};
    verification->reference = reference;
    problem.kernels[1].verification = verification;
    EXPECT_EQ(measure(problem).status, std::string(right) == "3" ? Status::ok : Status::wrong_result) << right;
  }
}

}  // namespace
}  // namespace ergotune::test
