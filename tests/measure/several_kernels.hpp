// Two kernels on the fake device, y = 2 x + k and z = 3 y, and rounds of them.
#pragma once

#include <fmt/format.h>

#include "ergotune/problem_file.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune::test {

inline Problem two_kernels(const std::string& steps) {
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
)toml",
                                   steps),
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
      for (std::size_t i = 0; i < kCount; ++i) launch.buffers[1]->floats()[i] = 3 * launch.buffers[0]->floats()[i];
      return 1e-3;
    };
  }

  Measurement measure(Runner& runner, int twice, int third, const RunOptions& run = {}) {
    const Configuration configuration{Value(twice), Value(third)};
    std::vector<Binary> binaries;
    for (std::size_t k = 0; k < 2; ++k)
      binaries.push_back(device.make_compiler()->compile(runner.compile_job(configuration, k)));
    return runner.run(configuration, binaries, run);
  }
  Measurement measure(const Problem& problem) {
    Runner runner(device, problem, options);
    return measure(runner, 32, 32);
  }

  FakeDevice device;
  MeasureOptions options;
  float wrong = 0;
};

/// A kernel's reference: one more function of the fake device, with the kernel's arguments and launch.
inline std::shared_ptr<Verification> beside(const std::string& function, const Kernel& kernel) {
  auto verification = std::make_shared<Verification>();
  verification->kind = Verification::Kind::kernel;
  verification->reference = std::make_shared<Kernel>(kernel);
  verification->reference->function = Template::parse(function);
  return verification;
}

}  // namespace ergotune::test
