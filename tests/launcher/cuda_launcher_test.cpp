// The launcher on CUDA, with a driver that has no GPU (tests/fakes/cuda) and the real compiler.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "device/cuda/cuda_api.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "ergotune/launcher.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "kernel/wisdom_key.hpp"
#include "temporary_folder.hpp"

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
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  cuda::CUcontext context = nullptr;
  cuda::CUstream stream = nullptr;
  cuda::CUdeviceptr memory = 0;
  std::vector<int> values = std::vector<int>(64);
  std::vector<std::string> warnings;
  std::string problem = kProblem;
  void SetUp() override {
    if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
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
  }
  Kernel kernel(bool background = false, double online = 0) {
    write_file(folder / "add.toml", problem);
    Options options;
    options.background = background;
    options.online = online;
    options.cache = (folder / "cache").string();
    options.warn = [this](const std::string& message) { warnings.push_back(message); };
    return Kernel((folder / "add.toml").string(), options);
  }
  Kernel capturing() {
    ::setenv("ERGOTUNE_CAPTURE", "add_one", 1);
    ::setenv("ERGOTUNE_CAPTURE_DIR", (folder / "captured").c_str(), 1);
    Kernel made = kernel();
    ::unsetenv("ERGOTUNE_CAPTURE");
    ::unsetenv("ERGOTUNE_CAPTURE_DIR");
    return made;
  }
  void wise(int block, int shared, int size = 64) {
    write_file(folder / "add.toml", problem);
    const Problem read = load_problem(folder / "add.toml");
    WisdomRecord record;
    record.configuration = {{"block", block}, {"shared", shared}};
    record.problem_size = {size};
    record.device = wisdom_device("NVIDIA H100 80GB HBM3", "cuda", {});
    record.device.name = "another of its kind";
    record.source_hash = source_hash(read, read.kernel(), "cuda", read.constants);
    add_to_wisdom(folder / "wisdom", "add_one", {record});
  }
  int first_value() {
    cuda::api().cuMemcpyDtoHAsync(values.data(), memory, 256, stream);
    return values[0];
  }
};

TEST_F(CudaApplication, RunsOnItsStreamAndMemoryByTheWisdomOfItsArchitecture) {
  wise(64, 60000);
  const Kernel add = kernel();
  add(stream, memory, 64);
  add(stream, memory, 64);
  EXPECT_EQ(first_value(), 2);
  const auto why = nlohmann::json::parse(add.why(stream, memory, 64));
  EXPECT_EQ(why["match"], "architecture");
  EXPECT_EQ(why["configuration"], nlohmann::json({{"block", 64}, {"shared", 60000}}))
      << "more than 48 KiB of shared memory were asked for";
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(CudaApplication, MoreSharedMemoryThanThereIsFallsBackToTheDefault) {
  wise(64, 400000);
  const Kernel add = kernel();
  add(stream, memory, 64);
  EXPECT_EQ(first_value(), 1);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("does not work here"));
  EXPECT_TRUE(nlohmann::json::parse(add.why(stream, memory, 64))["is_default"]);
}

TEST_F(CudaApplication, NothingIsLoadedWhileAStreamRecordsAGraph) {
  const Kernel add = kernel();
  ASSERT_EQ(cuda::api().cuStreamBeginCapture(stream, 0), 0);
  EXPECT_THAT(error_of<LaunchError>([&] { add(stream, memory, 64); }), HasSubstr("prepare()"));
  cuda::CUgraph graph = nullptr;
  ASSERT_EQ(cuda::api().cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuda::api().cuGraphDestroy(graph), 0);
  add.prepare(stream, memory, 64);
  ASSERT_EQ(cuda::api().cuStreamBeginCapture(stream, 0), 0);
  EXPECT_NO_THROW(add(stream, memory, 64));
  ASSERT_EQ(cuda::api().cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuda::api().cuGraphDestroy(graph), 0);
}

// A compiler that takes its time: it opens a pipe that nobody has come to. Then it sees that this is no header, and
// takes another.
TEST_F(CudaApplication, WhileTheBackgroundCompilesNobodyWaits) {
  const std::string from = "text = 'extern";
  problem.replace(problem.find(from), from.size(),
                  "text = '''\n#define SLOW \"slow.h\"\n#if block == 64\n#include SLOW\n#endif\nextern");
  problem.replace(problem.find("}' }"), 4, "}''' }");
  problem.insert(problem.find("arguments = ["), "options = [\"-I" + (folder / "more").string() + "\"]\n");
  std::filesystem::create_directories(folder / "more");
  write_file(folder / "more/slow.h", "");
  const auto pipe = folder / "slow.h";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto compiled = [&] {
    return std::count_if(std::filesystem::recursive_directory_iterator(folder / "cache"), {},
                         [](const auto& entry) { return entry.is_regular_file(); });
  };
  kernel()(stream, memory, 64);  // the default is on disk now
  wise(64, 0);
  wise(32, 0, 8);
  int writer = -1;
  {
    const Kernel add = kernel(true);
    add(stream, memory, 64);
    ::usleep(200'000);  // the background begins
    auto others = std::async(std::launch::async, [&] {
      add.reload();
      add(stream, memory, 8);
      add(stream, memory, 64);
      return nlohmann::json::parse(add.why(stream, memory, 32));
    });
    EXPECT_EQ(others.wait_for(std::chrono::seconds(30)), std::future_status::ready) << "they wait for the compiler";
    EXPECT_EQ(compiled(), 1) << "which is still at it";
    for (int i = 0; writer < 0 && i < 4000; ++i) {
      writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (writer < 0) ::usleep(5000);
    }
    ASSERT_GE(writer, 0) << "the compiler has not come to it";
    EXPECT_EQ(others.get()["configuration"]["block"], 64) << "nearer to 32 than that of 8";
  }
  ::close(writer);
  EXPECT_EQ(compiled(), 2) << "what runs is waited for";
  EXPECT_EQ(first_value(), 4);
  EXPECT_THAT(warnings, IsEmpty());
}

// A configuration that does without shared memory shifts no argument.
TEST_F(CudaApplication, IsTunedOnlineWithoutAWrongOrAdditionalLaunch) {
  const Kernel tuned = kernel(false, 50);
  nlohmann::json online = nlohmann::json::object();
  int launches = 0;
  while (!online.value("settled", false) && launches < 1'000'000) {
    for (int i = 0; i < 16; ++i, ++launches) tuned(stream, memory, 64);
    online = nlohmann::json::parse(tuned.why(stream, memory, 64)).value("online", nlohmann::json::object());
  }
  EXPECT_EQ(online["tried"], 5) << online;
  EXPECT_FALSE(online.contains("message")) << online;
  EXPECT_EQ(online["failed"], 2) << "those that need more shared memory than there is";
  EXPECT_EQ(first_value(), launches);
}

TEST_F(CudaApplication, LocalMemoryOfNoSizeIsNoArgument) {
  const std::string first = "arguments = [\n";
  problem.insert(problem.find(first) + first.size(),
                 "  { name = \"room\", type = \"int32\", local_count = \"shared\" },\n");
  kernel()(stream, memory, 64);
  EXPECT_EQ(first_value(), 1);
}

TEST_F(CudaApplication, AThreadWithoutAContextUsesTheFirstDevicesOwn) {
  ASSERT_EQ(cuda::api().cuCtxSetCurrent(nullptr), 0);
  const Kernel add = kernel();
  add(stream, memory, 64);
  EXPECT_EQ(first_value(), 1);
}

// Memory whose size the driver does not tell, as that of another library may be.
TEST_F(CudaApplication, WhatCannotBeCapturedIsLaunchedAllTheSame) {
  const Kernel add = capturing();
  const auto unknown = reinterpret_cast<cuda::CUdeviceptr>(values.data());
  for (int i = 1; i < 3; ++i) {
    EXPECT_NO_THROW(add(stream, unknown, 64));
    EXPECT_EQ(values[63], i);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::AllOf(HasSubstr("not captured: "), HasSubstr("cuMemGetAddressRange")));
}

TEST_F(CudaApplication, ALaunchIsCaptured) {
  const Kernel add = capturing();
  add.prepare(stream, memory, 64);
  ASSERT_EQ(cuda::api().cuStreamBeginCapture(stream, 0), 0);
  EXPECT_NO_THROW(add(stream, memory, 64)) << "what is prepared is recorded";
  cuda::CUgraph graph = nullptr;
  ASSERT_EQ(cuda::api().cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuda::api().cuGraphDestroy(graph), 0);
  EXPECT_THAT(warnings, IsEmpty()) << "and is captured when it runs by itself";
  add(stream, memory, 64);
  const Problem captured = load_problem(folder / "captured" / "add_one_64" / "problem.toml");
  EXPECT_EQ(captured.verification.kind, Verification::Kind::files);
  const Problem original = load_problem(folder / "add.toml");
  EXPECT_EQ(first_value(), 1);
  EXPECT_EQ(source_hash(captured, captured.kernel(), "cuda", captured.constants),
            source_hash(original, original.kernel(), "cuda", original.constants));
}

}  // namespace
}  // namespace ergotune::launcher
