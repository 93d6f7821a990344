#include "measure/verify/output_check.hpp"

#include <gmock/gmock.h>

#include "ergotune/problem_file.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/fake_device.hpp"

namespace ergotune {
namespace {

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
