// Kernels of a round beside references of their own.
#include "measure/several_kernels.hpp"

namespace ergotune::test {
namespace {

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
      "\"twice\" }] }, "
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

TEST_F(SeveralKernels, AReferenceOfAKernelMayRunOnTheHost) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  problem.verification.kind = Verification::Kind::none;
  for (const char* right : {"3", "4"}) {
    auto verification = beside("on_host", problem.kernels[1]);
    verification->kind = Verification::Kind::host_function;
    auto reference = std::make_shared<Kernel>(*verification->reference);
    reference->sources = {{Language::c,
                           {},
                           fmt::format("void on_host(const float *y, float *z) "
                                       "{{ for (int i = 0; i < 256; ++i) z[i] = {} * y[i]; }}",
                                       right),
                           {}}};
    verification->reference = reference;
    problem.kernels[1].verification = verification;
    EXPECT_EQ(measure(problem).status, std::string(right) == "3" ? Status::ok : Status::wrong_result) << right;
  }
}

}  // namespace
}  // namespace ergotune::test
