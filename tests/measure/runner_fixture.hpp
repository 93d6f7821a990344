// A runner on the fake device, and a problem small enough to know everything about it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/problem.hpp"
#include "measure/fake_device.hpp"
#include "measure/runner.hpp"
#include "parameters.hpp"

namespace ergotune::test {

constexpr std::size_t kCount = 256;

inline Argument buffer(const char* name, Access access) {
  Argument argument;
  argument.name = name;
  argument.count = Expression::parse("n");
  argument.access = access;
  return argument;
}

/// b = 2 a, one parameter.
inline Problem doubling() {
  Problem problem;
  problem.name = "doubling";
  problem.constants["n"] = static_cast<int>(kCount);
  Parameter parameter = test::listed("block_size_x", {32, 64, 128});
  problem.parameters.push_back(parameter);
  KernelSource source;
  source.text = "kernel";
  problem.kernel().sources.push_back(source);
  problem.kernel().function = Template::parse("double_{{block_size_x}}");
  Argument n;
  n.name = "n";
  n.kind = Argument::Kind::scalar;
  n.type = ElementType::int32;
  n.value = Expression::parse("n");
  problem.kernel().arguments = {n, buffer("a", Access::read), buffer("b", Access::write)};
  problem.kernel().launch.block = {Expression::parse("block_size_x")};
  problem.kernel().launch.global = {Expression::parse("n")};
  return problem;
}

inline FakeKernel right(double seconds) {
  return [seconds](const FakeLaunch& launch) {
    for (std::size_t i = 0; i < kCount; ++i) launch.buffers[2]->floats()[i] = 2 * launch.buffers[1]->floats()[i];
    return seconds;
  };
}

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() : problem(doubling()) {
    device.kernels["double_32"] = right(1e-3);
    device.kernels["double_64"] = right(2e-3);
  }
  Measurement measure(Runner& runner, int block, const RunOptions& options = {}) {
    const Configuration configuration{Value(block)};
    const Binary binary = device.make_compiler()->compile(runner.compile_job(configuration));
    return runner.run(configuration, binary, options);
  }
  Measurement measure(int block) {
    Runner runner(device, problem, options);
    return measure(runner, block);
  }
  FakeDevice device;
  Problem problem;
  MeasureOptions options;
};

}  // namespace ergotune::test
