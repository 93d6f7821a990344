// The HIP backend over a fake libamdhip64 (tests/fakes/hip): what is AMD's own in it. What it shares with CUDA is
// tested with CUDA's fake (cuda_test.cpp).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "device/backend.hpp"
#include "device/hip/hip_api.hpp"
#include "device_fixtures.hpp"
#include "ergotune/problem.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

const std::string kFake = ERGOTUNE_BINARY_DIR "/tests/fakes/hip/libamdhip64.so.5";
const std::string kKernels = ERGOTUNE_BINARY_DIR "/tests/fakes/hip/kernels.so";
const bool kFakeIsSet =
    setenv("ERGOTUNE_HIP", kFake.c_str(), 1) == 0 && setenv("FAKE_HIP_KERNELS", kKernels.c_str(), 1) == 0;

class HipTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFake)) GTEST_SKIP() << "build target fake_hip";
    ASSERT_TRUE(kFakeIsSet);
    library_ = dlopen(kFake.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    reset();
  }
  template <class Function>
  Function fake(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void reset() const { fake<void (*)()>("fake_cuda_reset")(); }
  void fail(const char* function, int code) const {
    fake<void (*)(const char*, int)>("fake_cuda_fail")(function, code);
  }
  int retained() const { return fake<int (*)()>("fake_cuda_retained")(); }
  int streams() const { return fake<int (*)()>("fake_cuda_streams")(); }

  void* library_ = nullptr;
};

TEST_F(HipTest, DevicesAreDescribedAsTheirSensorsKnowThem) {
  const auto device = open_device("hip:0");
  const auto& info = device->info();
  EXPECT_EQ(info.name, "AMD Instinct MI250X");
  EXPECT_EQ(info.uuid, "GPU-a1b2c3d4e5f60718");
  EXPECT_EQ(info.pci_address, "00000000:1b:00.0");
  EXPECT_EQ(info.driver_version, "HIP 6.3.42131");
  for (const auto& name : property_names()) EXPECT_TRUE(info.properties.contains(name)) << name;
  EXPECT_EQ(info.properties.at("device.architecture").as_string(), "gfx90a");
  EXPECT_EQ(info.properties.at("device.compute_capability").as_integer(), 90);
  EXPECT_EQ(info.properties.at("device.warp_size").as_integer(), 64);
  EXPECT_EQ(info.properties.at("device.multiprocessors").as_integer(), 110);
  EXPECT_EQ(info.properties.at("device.registers_per_multiprocessor").as_integer(), 131072);
  EXPECT_EQ(open_device("hip:GPU-a1b2c3d4e5f60719")->info().id, "hip:1");
}

TEST_F(HipTest, TheCompilerKnowsItsDevicesFeatures) {
  if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
  EXPECT_THAT(open_compiler("hip:0")->identity(), HasSubstr("| gfx90a:sramecc+:xnack-"));
  EXPECT_THAT(open_device("hip:1")->make_compiler()->identity(), HasSubstr("gfx90a:sramecc+:xnack+"));
}

TEST_F(HipTest, CompiledCodeRunsAndSaysWhatItNeeds) {
  if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
  const auto device = open_device("hip:0");
  CompileJob job;
  job.language = Language::hip;
  job.source =
      "extern \"C\" __global__ void doubled(float* y, const float* x, int n) {\n"
      "  __shared__ float room[128];\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  room[threadIdx.x] = x[i];\n  __syncthreads();\n  if (i < n) y[i] = room[threadIdx.x ^ 1];\n}";
  job.function = "doubled";
  const auto kernel = device->load(device->make_compiler()->compile(job));
  const auto resources = kernel->resources();
  EXPECT_EQ(resources.shared_bytes, 512) << "of the code itself";
  EXPECT_EQ(resources.spilled_registers, 0);
  EXPECT_GT(resources.registers, 0);
  EXPECT_EQ(resources.max_threads_per_block, 1024);
  const auto x = upload(*device, std::vector<float>{1, 2, 3}), y = upload(*device, std::vector<float>(3, 0));
  kernel->bind({{1, 1, 1}, {128, 1, 1}}, {of(*y), of(*x), scalar<std::int32_t>(3)});
  EXPECT_EQ(kernel->resident_blocks(), 16);
  const auto start = device->make_marker(), stop = device->make_marker();
  device->record(*start);
  device->launch(*kernel, 3);
  device->record(*stop);
  device->synchronise();
  EXPECT_EQ(download<float>(*device, *y, 3), (std::vector<float>{2, 4, 6}));
  EXPECT_GE(device->seconds_between(*start, *stop), 3 * 1.9e-3);
}

TEST_F(HipTest, AllSharedMemoryIsThereWithoutAskingAndNoMore) {
  const auto device = open_device("hip:0");
  const auto kernel = device->load({"add_one", "add_one", ""});
  kernel->bind({{1, 1, 1}, {32, 1, 1}, 65536}, {});
  EXPECT_EQ(fake<long (*)(const char*)>("fake_cuda_count")("cuFuncSetAttribute"), 0);
  EXPECT_EQ(fault_of([&] { kernel->bind({{1, 1, 1}, {32, 1, 1}, 65537}, {}); }), DeviceFault::launch);
}

TEST_F(HipTest, AQueueCanHaveComputeUnitsForItself) {
  const auto device = open_device("hip:0");
  QueueOptions part;
  part.multiprocessors = 36;
  part.first_multiprocessor = 30;
  const auto queue = device->make_queue(part);
  const auto word = fake<unsigned (*)(unsigned)>("fake_hip_mask");
  EXPECT_EQ(word(0), 0xc0000000u);
  EXPECT_EQ(word(1), 0xffffffffu);
  EXPECT_EQ(word(2), 0x3u);
  EXPECT_EQ(word(3), 0u);
  const auto kernel = device->load({"add_one", "add_one", ""});
  const auto x = upload(*device, std::vector<int>{0});
  kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
  device->launch(*kernel, 1000, queue.get());
  device->synchronise();
  EXPECT_EQ(download<int>(*device, *x, 1)[0], 1000);
  EXPECT_EQ(fake<long (*)(const char*)>("fake_cuda_count")("cuGraphLaunch"), 0) << "a graph would run anywhere";
  part.multiprocessors = 110;
  EXPECT_EQ(fault_of([&] { device->make_queue(part); }), DeviceFault::launch) << "30 to 140 of 110";
}

TEST_F(HipTest, FaultsSayHipsWords) {
  const auto device = open_device("hip:0");
  const auto kernel = device->load({"fault_address", "fault_address", ""});
  kernel->bind({}, {});
  device->launch(*kernel);
  try {
    device->synchronise();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::runtime);
    EXPECT_THAT(error.what(), HasSubstr("hipErrorIllegalAddress (700): words of the fake run time"));
  }
}

// Debian's share libLLVM: the second would end the process.
TEST_F(HipTest, PoclAndHiprtcNeverMeetInOneProcess) {
  if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
  EXPECT_EXIT(
      {
        open_compiler("hip:gfx90a");
        std::vector<std::string> notes;
        list_devices(&notes);
        open_compiler("hip:gfx90a");
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        const auto devices = list_devices();
        const bool pocl = std::ranges::any_of(devices, [](const auto& d) { return d.backend == "opencl"; });
        try {
          open_compiler("hip:gfx90a");
        } catch (const UserError& error) {
          std::exit(pocl && std::string(error.what()).find("PoCL") != std::string::npos ? 0 : 1);
        }
        std::exit(pocl ? 2 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(HipTest, CudaSourcesAreTakenWhereThereIsNoneInHip) {
  Kernel kernel;
  kernel.sources = {{Language::opencl, {}, "o", {}}, {Language::cuda, {}, "c", {}}};
  EXPECT_EQ(source_for_device(kernel, "hip").text, "c");
  EXPECT_EQ(language_on_device(source_for_device(kernel, "hip"), "hip"), Language::hip);
  EXPECT_EQ(language_on_device(source_for_device(kernel, "cuda"), "cuda"), Language::cuda);
  kernel.sources.push_back({Language::hip, {}, "h", {}});
  EXPECT_EQ(source_for_device(kernel, "hip").text, "h");
  EXPECT_EQ(source_for_device(kernel, "cuda").text, "c");
  kernel.sources = {{Language::c, {}, "", {}}};
  EXPECT_THROW(source_for_device(kernel, "hip"), UserError);
}

/// What a configuration goes through, from the list of devices to the results.
void one_of_everything() {
  const auto device = open_device("hip:0");
  std::vector<int> memory(16);
  const auto pinned = device->pin(std::as_writable_bytes(std::span(memory)));
  const auto x = upload(*device, memory), y = upload(*device, memory);
  EXPECT_EQ(device->wrap_buffer(x->native_handle(), 4)->bytes(), 4u);
  device->settle();
  const auto kernel = device->load({"add_one", "add_one", ""});
  kernel->resources();
  kernel->bind({}, {of(*x), scalar<std::int32_t>(16)});
  kernel->resident_blocks();
  const auto queue = device->make_queue({QueueOptions::Priority::high});
  const auto start = device->make_marker(), stop = device->make_marker();
  device->record(*start, queue.get());
  device->wait(device->main_queue(), *start);
  device->launch(*kernel, 1000, queue.get());
  const auto graph = device->record_graph([&] { device->launch(*kernel, 2); });
  if (graph) device->launch_graph(*graph);
  device->copy(*y, *x, queue.get());
  device->fill(*x, 0, queue.get());
  device->record(*stop, queue.get());
  device->synchronise();
  EXPECT_TRUE(device->passed(*stop));
  device->seconds_between(*start, *stop);
  EXPECT_EQ(download<int>(*device, *y, 1)[0], graph ? 1002 : 1000);
}

TEST_F(HipTest, EveryFunctionThatFailsIsAnErrorOrDoneWithoutAndNothingIsLeft) {
  constexpr std::array functions = {"cuInit",
                                    "hipDriverGetVersion",
                                    "cuDeviceGetCount",
                                    "cuDeviceGet",
                                    "hipDeviceGetName",
                                    "hipDeviceGetUuid",
                                    "cuDeviceGetPCIBusId",
                                    "cuDeviceTotalMem_v2",
                                    "hipDeviceGetAttribute",
                                    "hipGetDevicePropertiesR0600",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuDevicePrimaryCtxRelease_v2",
                                    "cuCtxSetCurrent",
                                    "cuModuleLoadDataEx",
                                    "cuCtxGetCurrent",
                                    "cuCtxSynchronize",
                                    "cuPointerGetAttribute",
                                    "cuModuleUnload",
                                    "cuModuleGetFunction",
                                    "cuFuncGetAttribute",
                                    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
                                    "cuLaunchKernel",
                                    "cuMemAlloc_v2",
                                    "cuMemFree_v2",
                                    "cuMemcpyHtoDAsync_v2",
                                    "cuMemcpyDtoHAsync_v2",
                                    "cuMemcpyDtoDAsync_v2",
                                    "cuMemsetD8Async",
                                    "cuStreamCreate",
                                    "cuStreamCreateWithPriority",
                                    "cuCtxGetStreamPriorityRange",
                                    "cuStreamDestroy_v2",
                                    "cuStreamSynchronize",
                                    "cuStreamWaitEvent",
                                    "cuEventCreate",
                                    "cuEventDestroy_v2",
                                    "cuEventRecord",
                                    "cuEventQuery",
                                    "cuEventElapsedTime",
                                    "cuStreamBeginCapture_v2",
                                    "cuStreamEndCapture",
                                    "cuGraphInstantiateWithFlags",
                                    "cuGraphLaunch",
                                    "cuGraphExecDestroy",
                                    "cuGraphDestroy"};
  int errors = 0;
  for (const char* function : functions) {
    for (const int code : {1, 2, 700, 719}) {
      reset();
      fail(function, code);
      try {
        one_of_everything();
      } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::to_string(code))) << function;
        ++errors;
      } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("hip:")) << function;
        ++errors;
      }
      EXPECT_GT(fake<long (*)(const char*)>("fake_cuda_count")(function), 0) << function << " was never asked";
      EXPECT_EQ(retained(), 0) << function;
      EXPECT_EQ(streams(), 0) << function;
      fail(function, 0);
      EXPECT_NO_THROW(one_of_everything()) << "after " << function;
    }
  }
  EXPECT_GT(errors, 80) << "most of them cannot be done without";
}

TEST_F(HipTest, WhereThereIsNoAmdGpuTheLibraryIsNotEvenOpened) {
  if (std::filesystem::exists("/dev/kfd") || std::filesystem::exists("/dev/dxg")) GTEST_SKIP() << "there may be one";
  unsetenv("ERGOTUNE_HIP");
  std::string note;
  EXPECT_TRUE(device::list_hip(&note).empty());
  setenv("ERGOTUNE_HIP", kFake.c_str(), 1);
  EXPECT_THAT(note, HasSubstr("hip: no AMD GPU"));
}

}  // namespace
