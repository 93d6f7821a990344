// The CUDA compile path, for real and without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "device/cuda/nvrtc_api.hpp"
#include "device/entries.hpp"
#include "device_fixtures.hpp"
#include "temporary_folder.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  }
  static CompileJob job(const std::string& source, const std::string& function) {
    CompileJob job;
    job.language = Language::cuda;
    job.source = source;
    job.source_name = "kernel.cu";
    job.function = function;
    return job;
  }
  /// An ELF file for machine 190, which is CUDA.
  static bool is_cubin(const std::string& packed) {
    const std::string bytes = device::PackedCode::unpack(packed).code;
    return bytes.size() > 20 && bytes.substr(0, 4) == "\177ELF" && static_cast<unsigned char>(bytes[18]) == 190;
  }
};

TEST_F(NvrtcTest, CompilesToABinaryWithMacros) {
  auto f = job("extern \"C\" __global__ void f(int* x) { x[0] = VALUE; }", "f");
  f.defines = {{"VALUE", "(1 + 2)"}};
  const auto binary = open_compiler("cuda:sm_90")->compile(f);
  EXPECT_TRUE(is_cubin(binary.bytes));
  EXPECT_EQ(binary.entry, "f");
}

// It takes longer to start than most kernels take to compile.
TEST_F(NvrtcTest, TheDisassemblerIsStartedOnlyWhereInstructionsAreRequestedFor) {
  const TemporaryFolder folder;
  const fs::path started = folder.path() / "started";
  const fs::path program = folder.write("nvdisasm", "#!/bin/sh\ntouch '" + started.string() + "'\n");
  fs::permissions(program, fs::perms::owner_all);
  ::setenv("ERGOTUNE_NVDISASM", program.c_str(), 1);
  auto f = job("extern \"C\" __global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; }", "f");
  const auto compiler = open_compiler("cuda:sm_90");
  const auto cheap = device::PackedCode::unpack(compiler->compile(f).bytes);
  EXPECT_FALSE(fs::exists(started));
  EXPECT_EQ(cheap.instructions_from, "PTX");
  EXPECT_EQ(cheap.instructions.at("static_fma"), 1);
  f.disassemble = true;
  compiler->compile(f);
  EXPECT_TRUE(fs::exists(started));
}

TEST_F(NvrtcTest, TemplatesGiveTheirLoweredName) {
  const auto compiler = open_compiler("cuda:sm_90");
  const char* source = "namespace n { template <int N, class T> __global__ void f(T* x) { x[0] = N; } }";
  const auto four = compiler->compile(job(source, "n::f<4, float>"));
  EXPECT_TRUE(is_cubin(four.bytes));
  EXPECT_EQ(four.entry, "_ZN1n1fILi4EfEEvPT0_");
  EXPECT_THAT(four.bytes, HasSubstr(four.entry));
}

TEST_F(NvrtcTest, CompileErrorsCarryTheCompilersWordsAndPlace) {
  try {
    open_compiler("cuda:sm_90")->compile(job("__global__ void f(int* x) {\n  x[0] = undeclared_name;\n}\n", "f"));
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_THAT(error.what(), HasSubstr("kernel.cu(2)"));
    EXPECT_THAT(error.what(), HasSubstr("undeclared_name"));
  }
}

TEST_F(NvrtcTest, AMissingFunctionIsACompileFault) {
  try {
    open_compiler("cuda:sm_90")->compile(job("__global__ void forces(float* x) {}\nint main() {}", "force"));
    FAIL();
  } catch (const device::Mismatch& error) {
    EXPECT_THAT(error.what(), HasSubstr("forces"));
  }
  EXPECT_EQ(fault_of([] { open_compiler("cuda:sm_90")->compile(job("__global__ void f() {}", "g<3>")); }),
            DeviceFault::compile);
}

TEST_F(NvrtcTest, TooMuchStaticSharedMemoryIsACompileFault) {
  const char* source =
      "__global__ void f(int* x) { __shared__ int room[20000]; room[threadIdx.x] = x[threadIdx.x]; __syncthreads();\n"
      "  x[threadIdx.x] = room[19999 - threadIdx.x]; }";
  EXPECT_EQ(fault_of([&] { open_compiler("cuda:sm_90")->compile(job(source, "f")); }), DeviceFault::compile);
}

TEST_F(NvrtcTest, ArgumentsThatTheKernelDoesNotTakeAreCompileFaults) {
  const auto compiler = open_compiler("cuda:sm_90");
  for (const char* linkage : {"", "extern \"C\" "}) {
    auto f = job(std::string(linkage) + "__global__ void f(REAL* x, const int n) { x[0] = n; }", "f");
    f.defines = {{"REAL", "float"}};
    for (const auto& [arguments, fit] : signatures()) {
      f.arguments = arguments;
      EXPECT_EQ(fault_of([&] { compiler->compile(f); }), fit ? std::nullopt : std::optional(DeviceFault::compile))
          << linkage << arguments.size();
    }
  }
  auto packed = job("struct S { double a; float* p; }; __global__ void f(S s, uint4* v) { s.p[0] = v->x; }", "f");
  ArgumentSignature s{Argument::Kind::scalar, ElementType::float32, "s", "S", 16};
  packed.arguments = {s, {Argument::Kind::buffer, ElementType::float16, "v"}};
  EXPECT_EQ(fault_of([&] { compiler->compile(packed); }), std::nullopt);
  packed.arguments[0].bytes = 24;
  EXPECT_EQ(fault_of([&] { compiler->compile(packed); }), DeviceFault::compile);
}

TEST_F(NvrtcTest, BuffersOfOtherNumbersThanTheKernelTakesAreCompileFaults) {
  const auto compiler = open_compiler("cuda:sm_90");
  for (const auto& [pointer, given, fits] : pointer_cases())
    for (const char* linkage : {"", "extern \"C\" "}) {
      auto f =
          job(fmt::format("{}__global__ void f(const {}* x, int* y) {{ y[0] = sizeof x[0]; }}", linkage, pointer), "f");
      f.arguments = {{Argument::Kind::buffer, given, "x"}, {Argument::Kind::buffer, ElementType::int32, "y"}};
      EXPECT_EQ(fault_of([&] { compiler->compile(f); }), fits ? std::nullopt : std::optional(DeviceFault::compile))
          << linkage << pointer << " " << to_string(given);
    }
  auto table = job("__global__ void f(double** x) { x[0][0] = 1; }", "f");
  table.arguments = {{Argument::Kind::buffer, ElementType::uint64, "x"}};
  EXPECT_EQ(fault_of([&] { compiler->compile(table); }), std::nullopt) << "addresses";
}

TEST_F(NvrtcTest, CudasOwnHeadersAreFound) {
  if (nvrtc::include_folders().empty()) GTEST_SKIP() << "no CUDA headers";
  const char* source = "#include <cuda_fp16.h>\n__global__ void f(__half* x) { x[0] = __float2half(1.0f); }";
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(job(source, "f")).bytes));
  const std::filesystem::path folder = nvrtc::include_folders().front();
  if (!std::filesystem::exists(folder / "cooperative_groups.h")) return;
  const char* groups =
      "#include <cooperative_groups.h>\n__global__ void f() { cooperative_groups::this_thread_block().sync(); }";
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(job(groups, "f")).bytes));
}

TEST(NvrtcHeaders, NameTheFolderForAHeaderOfTheToolkit) {
  for (const char* header : {"cuda/std/array", "own.cuh"}) {
    const std::string log = fmt::format("k.cu(1): catastrophic error: cannot open source file \"{}\"", header);
    EXPECT_THAT(device::compile_error(log, 6).what(), testing::HasSubstr("include_folders")) << header;
  }
}

// as sources written for nvcc include them
TEST_F(NvrtcTest, HeadersOfTheCLibraryAreFound) {
  std::string source;
  for (const char* name : {"assert.h",  "cassert",  "cfloat",   "climits", "cmath",      "cstddef",  "cstdint",
                           "cstdio",    "cstdlib",  "cstring",  "float.h", "inttypes.h", "limits.h", "math.h",
                           "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",   "string.h"})
    source += "#include <" + std::string(name) + ">\n";
  source += R"(
    __global__ void f(float* x, std::uint64_t* y, uint32_t n, int64_t m) {
      static_assert(sizeof(int64_t) == 8 && sizeof(std::int16_t) == 2 && INT32_MAX == INT_MAX, "");
      assert(n > 0);
      if (n == 7) printf("seven");
      x[0] = std::sqrt(x[1]) + std::fabs(x[2]) + FLT_MAX * float(M_PI) + (std::isnan(x[3]) ? INFINITY : fmaxf(x[4], NAN));
      y[0] = UINT64_MAX - static_cast<std::size_t>(m);
      std::memcpy(x + 8, x, n);
    })";
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(job(source, "f")).bytes));
  // those of the problem's own folders come first
  TemporaryFolder folder;
  folder.write("stdint.h", "typedef unsigned uint32_t;\nstruct Own {};\n");
  auto own = job("#include <stdint.h>\n__global__ void f(uint32_t* x) { x[0] = sizeof(Own); }", "f");
  own.include_folders = {folder.path().string()};
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(own).bytes));
}

// A program as it is built by nvcc.
TEST_F(NvrtcTest, HostCodeInTheFileIsLeftOut) {
  const std::string program = R"(#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#include <sys/time.h>
#include "local.h"
using namespace std;
static void check(cudaError_t error) { if (error != cudaSuccess) exit(1); }
static vector<float> input(1024);
extern "C" __global__ void f(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= BLOCK * factor();
}
int main() {
  std::vector<float> data(input);
  check(cudaMalloc(nullptr, data.size()));
  f<<<4, 256>>>(nullptr, 1024);
}
)";
  const TemporaryFolder folder;
  folder.write("local.h",
               "#pragma once\n#include <string>\nstruct Options { std::string name; };\n"
               "inline void usage() { std::exit(2); }\n#define HOST_DEVICE __host__ __device__\n"
               "const int kFactor = 3;\nHOST_DEVICE inline int factor() { return kFactor; }\n");
  auto f = job(program, "f");
  f.defines = {{"BLOCK", "2"}};
  f.include_folders = {folder.path().string()};
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(f).bytes));
  f.source.replace(f.source.find("x[i] *="), 7, "x[j] *=");
  try {
    open_compiler("cuda:sm_90")->compile(f);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("kernel.cu(11)")) << "the kernel's own errors keep their lines";
  }
}

TEST_F(NvrtcTest, TypesThatNvccKnowsWithoutAHeaderAreDeclared) {
  auto f =
      job("#include <chrono>\nusing namespace std::chrono;\n"
          "__global__ void f(int64_t* x, uint n, ushort* y) { if (threadIdx.x < n) x[0] = y[0]; }\nint main() {}\n",
          "f");
  f.arguments = {};
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(f).bytes));
}

TEST_F(NvrtcTest, HeadersOfCudasStandardLibraryServeThoseOfTheHosts) {
  if (nvrtc::include_folders().empty()) GTEST_SKIP() << "no CUDA headers";
  const char* source =
      "#include <type_traits>\n#include <limits>\ntemplate <class T> __global__ void f(T* x) {\n"
      "  if constexpr (std::is_same<T, float>::value) x[0] = std::numeric_limits<T>::max();\n}\n";
  EXPECT_TRUE(is_cubin(open_compiler("cuda:sm_90")->compile(job(source, "f<float>")).bytes));
}

TEST_F(NvrtcTest, AnArchitectureNewerThanTheCompilerGetsIntermediateCode) {
  const auto compiler = open_compiler("cuda:sm_999");
  EXPECT_THAT(compiler->identity(), HasSubstr("compute_"));
  EXPECT_THAT(compiler->compile(job("__global__ void f() {}", "f")).bytes, HasSubstr(".visible .entry"));
}

TEST_F(NvrtcTest, ArchitectureSuffixesAreKept) {
  EXPECT_THAT(open_compiler("cuda:sm_90a")->identity(), HasSubstr("sm_90a"));
}

TEST_F(NvrtcTest, NonsenseArchitecturesAreTheUsersMistake) {
  for (const char* id : {"cuda:sm_", "cuda:sm_x", "cuda:sm_90q", "cuda:sm_9000000000", "cuda:sm_10"})
    EXPECT_THROW(open_compiler(id), UserError) << id;
}

}  // namespace
