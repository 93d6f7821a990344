// Rounds of several kernels in the runner, on the fake device: outputs, swaps, races, failures, times in the mix.
#include <fmt/format.h>

#include "ergotune/problem/load.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Problem two_kernels(const std::string& steps) {
  return parse_problem(fmt::format(R"toml(
[constants]
n = 256
[buffers]
x = {{ type = "float32", count = "n", fill = {{ range = [0, 1] }} }}
y = {{ type = "float32", count = "n" }}
z = {{ type = "float32", count = "n" }}
[kernels.twice]
function = "twice_{{{{B}}}}"
source.opencl.text = "x"
parameters = {{ B = [32, 64] }}
arguments = [{{ buffer = "x" }}, {{ buffer = "y", access = "write" }}, {{ name = "add", type = "int32", value = "k" }}]
launch = {{ global = ["n"], block = ["B"] }}
[kernels.third]
function = "third_{{{{B}}}}"
source.opencl.text = "x"
parameters = {{ B = [32, 64] }}
arguments = [{{ buffer = "y" }}, {{ buffer = "z", access = "write" }}]
launch = {{ global = ["n"], block = ["B"] }}
[workload]
steps = [{}, {{ for = "k", to = 0, steps = [{{ kernel = "twice" }}] }}]
)toml", steps),
                       "p.toml");
}

class SeveralKernels : public ::testing::Test {
 protected:
  SeveralKernels() {
    device.device_info.properties["device.warp_size"] = Value(32);
    device.device_info.properties["device.max_threads_per_multiprocessor"] = Value(2048);
    device.device_info.properties["device.max_blocks_per_multiprocessor"] = Value(16);
    device.device_info.properties["device.registers_per_multiprocessor"] = Value(65536);
    device.kernels["twice_32"] = device.kernels["twice_64"] = [this](const FakeLaunch& launch) {
      int add = 0;
      std::memcpy(&add, launch.scalars[2].data(), sizeof add);
      for (std::size_t i = 0; i < kCount; ++i)
        launch.buffers[1]->floats()[i] = 2 * launch.buffers[0]->floats()[i] + static_cast<float>(add) + wrong;
      return 2e-3;
    };
    device.kernels["third_32"] = device.kernels["third_64"] = [](const FakeLaunch& launch) {
      for (std::size_t i = 0; i < kCount; ++i)
        launch.buffers[1]->floats()[i] = 3 * launch.buffers[0]->floats()[i];
      return 1e-3;
    };
  }

  Measurement measure(Runner& runner, int twice, int third) {
    const Configuration configuration{Value(twice), Value(third)};
    std::vector<Binary> binaries;
    for (std::size_t k = 0; k < 2; ++k)
      binaries.push_back(device.make_compiler()->compile(runner.compile_job(configuration, k)));
    return runner.run(configuration, binaries);
  }
  Measurement measure(const Problem& problem) {
    Runner runner(device, problem, options);
    return measure(runner, 32, 32);
  }

  FakeDevice device;
  MeasureOptions options;
  float wrong = 0;
};

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
  // x -> 2x + 0 -> 2(2x) + 1 -> 2(4x + 1) + 2: three swaps, so that it is called x in the end; y is then what came before.
  EXPECT_EQ(x[5], 8 * 5 + 4);
  EXPECT_EQ(z[5], 3 * (4 * 5 + 1));
}

TEST_F(SeveralKernels, ARaceIsAWrongResultThatSaysSo) {
  // Side by side "third" may read what "twice" has not written yet: on the fake device it comes first there.
  const Measurement result = measure(two_kernels("{ concurrent = [\"twice\", \"third\"], order = [\"third\", \"twice\"] }"));
  EXPECT_EQ(result.status, Status::wrong_result);
  EXPECT_THAT(result.message, StartsWith("a race: in sequence the same kernels are right"));
  EXPECT_THAT(result.message, HasSubstr("output \"z\""));
  // In the order in which it is right, it stays right.
  EXPECT_EQ(measure(two_kernels("{ concurrent = [\"twice\", \"third\"] }")).status, Status::ok);
}

/// A kernel's reference: one more function of the fake device, with the kernel's arguments and launch.
std::shared_ptr<Verification> beside(const std::string& function, const Kernel& kernel) {
  auto verification = std::make_shared<Verification>();
  verification->kind = Verification::Kind::kernel;
  verification->reference = std::make_shared<Kernel>(kernel);
  verification->reference->function = Template::parse(function);
  return verification;
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

TEST_F(SeveralKernels, OnlyResourcesAreAskedForWithoutALaunch) {
  const Problem problem = two_kernels("{ kernel = \"twice\" }, { kernel = \"third\" }");
  Runner runner(device, problem, options);
  const Configuration configuration{Value(64), Value(32)};
  std::vector<Binary> binaries;
  for (std::size_t k = 0; k < 2; ++k)
    binaries.push_back(device.make_compiler()->compile(runner.compile_job(configuration, k)));
  RunOptions only;
  only.resources_only = true;
  const Measurement result = runner.run(configuration, binaries, only);
  EXPECT_EQ(device.launches, 0u);
  EXPECT_DOUBLE_EQ(result.quantities.at("occupancy.twice").value, 0.5);
  EXPECT_FALSE(result.quantities.contains("time"));
}

TEST_F(SeveralKernels, BuffersThatSwapMustBeAlike) {
  Problem problem = two_kernels("{ kernel = \"twice\" }, { swap = [\"x\", \"y\"] }, { kernel = \"third\" }");
  for (Kernel& kernel : problem.kernels)
    for (Argument& argument : kernel.arguments)
      if (argument.name == "y") argument.count = Expression::parse("2 * n");
  EXPECT_THROW(Runner(device, problem, options), UserError);
}

}  // namespace
}  // namespace ergotune::test
