// A function that the source does not have, or that is no kernel, is recognised where it does not compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/device.hpp"
#include "evaluate/compile/compile_step.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

class Refusing : public Compiler {
 public:
  Binary compile(const CompileJob&) override { throw DeviceError(DeviceFault::compile, "line 1: an error"); }
  std::string identity() const override { return "refusing"; }
};

CompileOutcome outcome(const std::string& source, const std::string& function, Language language = Language::cuda) {
  CompileJob job;
  job.language = language;
  job.source = source;
  job.source_name = "k.cu";
  job.function = function;
  job.defines = {{"MARK", "__global__"}};
  const DeviceInfo device;
  return CompileStep(std::make_unique<Refusing>(), device, "").run([&] { return job; });
}

const std::string kSource =
    "#include <cuda_fp16.h>\n#define KERNEL __global__\n"
    "__device__ float twice(float x) { return 2 * x; }\nint main() { return 0; }\n"
    "template <int N> __global__ void scale(float* x) { x[0] = twice(x[0]); }\n"
    "KERNEL void add(float* x) { x[0] += 1; }\nMARK void sub(float* x) { x[0] -= 1; }\n";

TEST(CompileStep, NamesTheKernelsWhereTheFunctionIsNone) {
  for (const char* function : {"twice", "main", "absent", "absent<4>"}) {
    const CompileOutcome refused = outcome(kSource, function);
    EXPECT_EQ(refused.mismatch, kFunctionMismatch) << function;
    EXPECT_THAT(refused.message, HasSubstr("scale")) << function;
  }
  const std::string opencl =
      "float twice(float x) { return 2 * x; }\nkernel void scale(global float* x) { x[0] = 1; }\n";
  EXPECT_EQ(outcome(opencl, "twice", Language::opencl).mismatch, kFunctionMismatch);
}

TEST(CompileStep, NamesTheArgumentsThatATemplateNeeds) {
  const CompileOutcome refused = outcome(kSource, "scale");
  EXPECT_EQ(refused.mismatch, kFunctionMismatch);
  EXPECT_THAT(refused.message, HasSubstr("scale<{{N}}>"));
}

TEST(CompileStep, LeavesWhatCanBeAKernelToTheCompiler) {
  for (const char* function : {"scale<4>", "add", "sub", "n::scale<4>"})
    EXPECT_EQ(outcome(kSource, function).mismatch, kFits) << function;
  EXPECT_EQ(outcome("#include \"more.cuh\"\n" + kSource, "absent").mismatch, kFits);
  EXPECT_EQ(outcome("#include \"more.cuh\"\nDEFINED_THERE void f(float* x) { x[0] = 1; }\n", "f").mismatch, kFits);
  EXPECT_EQ(outcome("// registered by a program\n", "absent").mismatch, kFits);
  EXPECT_EQ(outcome("static void f(int* x) { x[0] = 1; }\n", "f", Language::c).mismatch, kFits);
}

}  // namespace
}  // namespace ergotune
