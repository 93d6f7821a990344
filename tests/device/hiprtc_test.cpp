// The HIP compile path, for real and without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device/code_object.hpp"
#include "device/hip/hip_api.hpp"
#include "device_fixtures.hpp"
#include "error_of.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

class HiprtcTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
  }
  static CompileJob job(const std::string& source, const std::string& function) {
    CompileJob job;
    job.language = Language::hip;
    job.source = source;
    job.source_name = "kernel.hip";
    job.function = function;
    return job;
  }
  static Binary compile(const CompileJob& job, const char* device = "hip:gfx90a") {
    return open_compiler(device)->compile(job);
  }
  static std::string description_of(const CompileJob& job) {
    try {
      compile(job);
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.fault(), DeviceFault::compile);
      return error.what();
    }
    return "it compiles";
  }
};

constexpr const char* kTemplates =
    "namespace n { template <int N, class T> __global__ void f(T* x) { x[threadIdx.x] = N; } }\n"
    "template <int N> __global__ void other(float* x) { x[0] = N; }\n"
    "template __global__ void other<1>(float*);\n"
    "extern \"C\" __global__ void plain(float* x) { x[0] = VALUE; }";

TEST_F(HiprtcTest, CompilesWithMacrosAndSaysWhatTheCodeNeeds) {
  auto f = job(
      "extern \"C\" __global__ void f(float* x, int n, float4 v) {\n"
      "  __shared__ float room[64 * VALUE];\n"
      "  room[threadIdx.x] = x[threadIdx.x] * v.x;\n  __syncthreads();\n  x[threadIdx.x] = room[n - threadIdx.x];\n}",
      "f");
  f.defines = {{"VALUE", "(1 + 2)"}};
  const Binary binary = compile(f);
  EXPECT_EQ(binary.entry, "f");
  const auto code = hip::read_code_object(binary.bytes);
  ASSERT_TRUE(code);
  EXPECT_THAT(code->target, HasSubstr("gfx90a"));
  ASSERT_EQ(code->kernels.size(), 1u);
  const hip::KernelMetadata& kernel = code->kernels.front();
  EXPECT_EQ(kernel.group_bytes, 64 * 3 * 4);
  EXPECT_EQ(kernel.private_bytes, 0);
  EXPECT_EQ(kernel.wavefront, 64);
  EXPECT_EQ(kernel.max_threads_per_block, 1024);
  EXPECT_THAT(kernel.vector_registers, testing::AllOf(testing::Ge(2), testing::Le(32)));
  EXPECT_EQ(kernel.vector_spills, 0);
  ASSERT_EQ(kernel.arguments.size(), 3u);
  EXPECT_TRUE(kernel.arguments[0].is_pointer);
  EXPECT_EQ(kernel.arguments[1].bytes, 4);
  EXPECT_EQ(kernel.arguments[2].offset, 16);
  EXPECT_EQ(kernel.arguments[2].bytes, 16);
}

TEST_F(HiprtcTest, HostCodeInTheFileIsLeftOut) {
  const auto compiler = open_compiler("hip:gfx90a");
  EXPECT_FALSE(compiler
                   ->compile(job("#include <hip/hip_runtime.h>\n#include <cstdio>\n#include <vector>\n"
                                 "extern \"C\" __global__ void f(int* x) { x[0] = 1; }\nint main() {\n"
                                 "  int* x = nullptr;\n  hipMalloc(&x, 4);\n  std::vector<int> y(4);\n"
                                 "  f<<<1, 1>>>(x);\n  printf(\"%d\", y[0]);\n}\n",
                                 "f"))
                   .bytes.empty());
}

TEST_F(HiprtcTest, ArchitecturesDiffer) {
  const char* source = "extern \"C\" __global__ void f(int* x) { x[0] = warpSize; }";
  for (const auto& [device, lanes] : {std::pair{"hip:gfx90a", 64}, {"hip:gfx1030", 32}}) {
    const auto code = hip::read_code_object(compile(job(source, "f"), device).bytes);
    ASSERT_TRUE(code) << device;
    EXPECT_EQ(code->kernels.at(0).wavefront, lanes) << device;
  }
  EXPECT_NE(open_compiler("hip:gfx90a")->identity(), open_compiler("hip:gfx1030")->identity());
}

TEST_F(HiprtcTest, TemplatesAndPlainKernelsAreFoundUnderTheNamesThatTheCodeHas) {
  auto f = job(kTemplates, "");
  f.defines = {{"VALUE", "7"}};
  for (const auto& [function, entry] : {std::pair{"n::f<4, float>", "_ZN1n1fILi4EfEEvPT0_"},
                                        {"n::f<2 * 2, double>", "_ZN1n1fILi4EdEEvPT0_"},
                                        {"other<3>", "_Z5otherILi3EEvPf"},
                                        {"plain", "plain"}}) {
    f.function = function;
    EXPECT_EQ(compile(f).entry, entry) << function;
  }
}

TEST_F(HiprtcTest, CompileErrorsCarryTheCompilersWordsAndPlace) {
  const std::string message = description_of(job("__global__ void f(int* x) {\n  x[0] = undeclared_name;\n}\n", "f"));
  EXPECT_THAT(message, testing::StartsWith("kernel.hip:2:10: error:"));
  EXPECT_THAT(message, HasSubstr("undeclared_name"));
  EXPECT_THAT(message, testing::Not(HasSubstr("comgr-"))) << "the folder of that time makes every failure another";
  EXPECT_THAT(description_of(job("__global__ void f() {}", "g<3>")), HasSubstr("g<3>"));
}

TEST_F(HiprtcTest, TooMuchStaticSharedMemoryIsACompileFault) {
  const char* source =
      "__global__ void f(int* x) { __shared__ int room[20000]; room[threadIdx.x] = x[threadIdx.x]; __syncthreads();\n  "
      "x[threadIdx.x] = room[19999 - threadIdx.x]; }";
  EXPECT_THAT(description_of(job(source, "f")), HasSubstr("local memory"));
}

TEST_F(HiprtcTest, ArgumentsThatTheKernelDoesNotTakeAreRefused) {
  auto f = job("extern \"C\" __global__ void f(float* x, double a) { x[0] = a; }", "f");
  const ArgumentSignature x{Argument::Kind::buffer, ElementType::float32, "x"};
  const ArgumentSignature a{Argument::Kind::scalar, ElementType::float64, "a"};
  const ArgumentSignature narrow{Argument::Kind::scalar, ElementType::float32, "a"};
  const ArgumentSignature room{Argument::Kind::local_memory, ElementType::float32, "room"};
  f.arguments = {x, room, a};
  EXPECT_EQ(description_of(f), "it compiles");
  for (const auto& wrong : {std::vector{x}, {x, narrow}, {x, x}}) {
    f.arguments = wrong;
    EXPECT_EQ(fault_of([&] { compile(f); }), DeviceFault::compile);
  }
}

TEST_F(HiprtcTest, AnArchitectureThatItDoesNotKnowIsSaidBeforehand) {
  if (!hiprtc::architectures()) GTEST_SKIP() << "this hiprtc does not say what it knows";
  for (const char* id : {"hip:gfx9999", "hip:gfx777:xnack+"}) {
    EXPECT_THAT(error_of([&] { open_compiler(id); }), HasSubstr("gfx90a")) << "what there is";
  }
  auto f = job("__global__ void f() {}", "f");
  f.options = {"--offload-arch=gfx9999"};
  EXPECT_THROW(compile(f), UserError);
}

/// Of AMD's data centre GPUs (gfx908, gfx90a, gfx942, gfx950): the newest that this hiprtc knows compiles, and says
/// what its code needs.
TEST_F(HiprtcTest, TheNewestDataCentreArchitectureThatItKnowsCompiles) {
  const auto known = hiprtc::architectures();
  if (!known) GTEST_SKIP() << "this hiprtc does not say what it knows";
  std::string newest;
  for (const char* name : {"gfx908", "gfx90a", "gfx940", "gfx942", "gfx950"})
    if (std::ranges::find(*known, name) != known->end()) newest = name;
  RecordProperty("newest", newest);
  EXPECT_NE(newest, "gfx908");
  if (hiprtc::version().find("hiprtc 9.0 ") == 0) {  // Debian 12's, of ROCm 5.2
    EXPECT_EQ(newest, "gfx90a");
  }
  const auto code = hip::read_code_object(
      compile(job("extern \"C\" __global__ void f(double* x) { x[threadIdx.x] += warpSize; }", "f"),
              ("hip:" + newest).c_str())
          .bytes);
  ASSERT_TRUE(code);
  EXPECT_THAT(code->target, HasSubstr(newest));
  EXPECT_EQ(code->kernels.at(0).wavefront, 64);
  EXPECT_GT(code->kernels.at(0).vector_registers, 0);
}

TEST_F(HiprtcTest, NonsenseArchitecturesAreTheUsersMistake) {
  for (const char* id : {"hip:gfx", "hip:gfx90z", "hip:gfx90a;rm", "hip:gfx90a0000000000"})
    EXPECT_THROW(open_compiler(id), UserError) << id;
}

}  // namespace
