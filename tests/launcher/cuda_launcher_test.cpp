// The launcher on CUDA, with a driver that has no GPU (tests/fakes/cuda) and the real compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "device/cuda_api.hpp"
#include "device/nvrtc_api.hpp"
#include "ergotune/kernel/wisdom_key.hpp"
#include "ergotune/launcher/launcher.hpp"
#include "ergotune/problem/load.hpp"

namespace ergotune::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFake = ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1";
// before anything opens CUDA in this process
const bool kFakeIsSet = setenv("ERGOTUNE_CUDA", kFake.c_str(), 1) == 0;

// The fake runs add_one(int* x, int n) whatever its source is.
const char* kProblem = R"(
name = "add"
[constants]
n = 64
[parameters]
block = [32, 64]
shared = [0, 60000, 400000]
[kernel]
function = "add_one"
source = { cuda = { text = 'extern "C" __global__ void add_one(int* x, int count) { if (threadIdx.x < count) x[threadIdx.x] += 1; }' } }
arguments = [
  { name = "x", type = "int32", count = "n", access = "read_write" },
  { name = "count", type = "int32", value = "n" },
]
[kernel.launch]
global = ["n"]
block = ["block"]
shared_memory_bytes = "shared"
)";

struct CudaApplication : testing::Test {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("ergotune-launcher-cuda-" + std::to_string(::getpid()));
  cuda::CUcontext context = nullptr;
  cuda::CUstream stream = nullptr;
  cuda::CUdeviceptr memory = 0;
  std::vector<int> values = std::vector<int>(64);
  std::vector<std::string> warnings;
  void SetUp() override {
    if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
    std::filesystem::create_directories(folder);
    const cuda::Api& api = cuda::api();
    ASSERT_TRUE(api.usable()) << api.problem();
    ASSERT_EQ(api.cuInit(0), 0);
    ASSERT_EQ(api.cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(api.cuCtxSetCurrent(context), 0);
    ASSERT_EQ(api.cuStreamCreate(&stream, 1), 0);
    ASSERT_EQ(api.cuMemAlloc(&memory, 256), 0);
    ASSERT_EQ(api.cuMemcpyHtoDAsync(memory, values.data(), 256, stream), 0);
  }
  void TearDown() override {
    const cuda::Api& api = cuda::api();
    if (memory) api.cuMemFree(memory);
    if (stream) api.cuStreamDestroy(stream);
    if (context) api.cuDevicePrimaryCtxRelease(0);
    std::filesystem::remove_all(folder);
  }
  Kernel kernel() {
    write_file(folder / "add.toml", kProblem);
    Options options;
    options.cache = (folder / "cache").string();
    options.warn = [this](const std::string& message) { warnings.push_back(message); };
    return Kernel((folder / "add.toml").string(), options);
  }
  void wise(int block, int shared) {
    write_file(folder / "add.toml", kProblem);
    const Problem problem = load_problem(folder / "add.toml");
    WisdomRecord record;
    record.configuration = {{"block", block}, {"shared", shared}};
    record.problem_size = {64};
    record.device = wisdom_device("NVIDIA H100 80GB HBM3", "cuda", {});
    record.device.name = "another of its kind";
    record.source_hash = source_hash(problem, problem.kernel(), "cuda", problem.constants);
    add_to_wisdom(folder / "wisdom", "add_one", {record});
  }
  int first() {
    cuda::api().cuMemcpyDtoHAsync(values.data(), memory, 256, stream);
    return values[0];
  }
};

TEST_F(CudaApplication, RunsOnItsStreamAndMemoryByTheWisdomOfItsArchitecture) {
  wise(64, 60000);
  const Kernel add = kernel();
  add(stream, memory, 64);
  add(stream, memory, 64);
  EXPECT_EQ(first(), 2);
  const auto why = nlohmann::json::parse(add.why(stream, memory, 64));
  EXPECT_EQ(why["match"], "architecture");
  EXPECT_EQ(why["configuration"], nlohmann::json({{"block", 64}, {"shared", 60000}})) << "more than 48 KiB of shared memory were asked for";
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(CudaApplication, MoreSharedMemoryThanThereIsFallsBackToTheDefault) {
  wise(64, 400000);
  const Kernel add = kernel();
  add(stream, memory, 64);
  EXPECT_EQ(first(), 1);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("does not work here"));
  EXPECT_TRUE(nlohmann::json::parse(add.why(stream, memory, 64))["is_default"]);
}

TEST_F(CudaApplication, NothingIsLoadedWhileAStreamRecordsAGraph) {
  const Kernel add = kernel();
  ASSERT_EQ(cuda::api().cuStreamBeginCapture(stream, 0), 0);
  try {
    add(stream, memory, 64);
    ADD_FAILURE() << "it was launched";
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr("prepare() such a launch before"));
  }
  cuda::CUgraph graph = nullptr;
  ASSERT_EQ(cuda::api().cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuda::api().cuGraphDestroy(graph), 0);
  add.prepare(stream, memory, 64);
  ASSERT_EQ(cuda::api().cuStreamBeginCapture(stream, 0), 0);
  EXPECT_NO_THROW(add(stream, memory, 64));
  ASSERT_EQ(cuda::api().cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuda::api().cuGraphDestroy(graph), 0);
}

TEST_F(CudaApplication, AThreadWithoutAContextUsesTheFirstDevicesOwn) {
  ASSERT_EQ(cuda::api().cuCtxSetCurrent(nullptr), 0);
  const Kernel add = kernel();
  add(stream, memory, 64);
  EXPECT_EQ(first(), 1);
}

TEST_F(CudaApplication, ALaunchIsCaptured) {
  ::setenv("ERGOTUNE_CAPTURE", "add_one", 1);
  ::setenv("ERGOTUNE_CAPTURE_DIR", (folder / "captured").c_str(), 1);
  kernel()(stream, memory, 64);
  ::unsetenv("ERGOTUNE_CAPTURE");
  ::unsetenv("ERGOTUNE_CAPTURE_DIR");
  const Problem captured = load_problem(folder / "captured" / "add_one_64" / "problem.toml");
  EXPECT_EQ(captured.verification.kind, Verification::Kind::files);
  const Problem original = load_problem(folder / "add.toml");
  EXPECT_EQ(source_hash(captured, captured.kernel(), "cuda", captured.constants), source_hash(original, original.kernel(), "cuda", original.constants));
}

}  // namespace
}  // namespace ergotune::launcher
