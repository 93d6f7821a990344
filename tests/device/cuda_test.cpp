// The CUDA backend's logic over a fake libcuda (tests/fakes/cuda): what it asks of the driver, in which
// order, and what it makes of the driver's errors. Real kernels on a real GPU are scripts/gpu-check's matter.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "device/cuda/cuda_api.hpp"
#include "device_fixtures.hpp"
#include "error_of.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

const std::string kFake = ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1";
// before anything opens the driver: the table is made once per process
const bool kFakeIsSet = setenv("ERGOTUNE_CUDA", kFake.c_str(), 1) == 0;

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFake)) GTEST_SKIP() << "build target fake_cuda";
    ASSERT_TRUE(cuda::api().usable()) << cuda::api().problem();
    auto* library = dlopen(kFake.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    count_ = reinterpret_cast<long (*)(const char*)>(dlsym(library, "fake_cuda_count"));
    retained_ = reinterpret_cast<int (*)()>(dlsym(library, "fake_cuda_retained"));
    hold_ = reinterpret_cast<void (*)(void*, bool)>(dlsym(library, "fake_cuda_hold"));
    priority_ = reinterpret_cast<int (*)(void*)>(dlsym(library, "fake_cuda_priority"));
    multiprocessors_ = reinterpret_cast<unsigned (*)(void*, unsigned*)>(dlsym(library, "fake_cuda_multiprocessors"));
    greens_ = reinterpret_cast<int (*)()>(dlsym(library, "fake_cuda_greens"));
    streams_ = reinterpret_cast<int (*)()>(dlsym(library, "fake_cuda_streams"));
    tensor_ = reinterpret_cast<std::uint64_t (*)(std::size_t, int)>(dlsym(library, "fake_cuda_tensor"));
    reinterpret_cast<void (*)()>(dlsym(library, "fake_cuda_reset"))();
    device_ = open_device("cuda:0");
  }
  std::unique_ptr<LoadedKernel> load(const std::string& name) { return device_->load({name, name, ""}); }

  long (*count_)(const char*) = nullptr;
  int (*retained_)() = nullptr;
  void (*hold_)(void*, bool) = nullptr;
  int (*priority_)(void*) = nullptr;
  unsigned (*multiprocessors_)(void*, unsigned*) = nullptr;
  int (*greens_)() = nullptr;
  int (*streams_)() = nullptr;
  std::uint64_t (*tensor_)(std::size_t, int) = nullptr;
  std::unique_ptr<Device> device_;
};

TEST_F(CudaTest, DevicesAreDescribedAsTheirSensorsKnowThem) {
  const auto& info = device_->info();
  EXPECT_EQ(info.name, "Fake H100");
  EXPECT_EQ(info.uuid, "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
  EXPECT_EQ(info.pci_address, "00000000:1b:00.0");
  EXPECT_EQ(info.driver_version, "CUDA 13.0");
  for (const auto& name : property_names()) EXPECT_TRUE(info.properties.contains(name)) << name;
  EXPECT_EQ(info.properties.at("device.compute_capability").as_integer(), 90);
  EXPECT_EQ(info.properties.at("device.multiprocessors").as_integer(), 132);
  EXPECT_EQ(info.properties.at("device.multiprocessor_unit").as_integer(), 8);
}

TEST_F(CudaTest, CudaComesFirstAndIsFoundByUuid) {
  EXPECT_EQ(list_devices().front().id, "cuda:0");
  EXPECT_EQ(open_device("")->info().id, "cuda:0");
  EXPECT_EQ(open_device("cuda")->info().id, "cuda:0");
  EXPECT_EQ(open_device("cuda:GPU-01112131-4151-6171-8191-a1b1c1d1e1f1")->info().id, "cuda:1");
}

TEST_F(CudaTest, KernelsRunAndMemoryMoves) {
  const auto x = upload(*device_, std::vector<int>{1, 2, 3});
  const auto kept = device_->allocate(x->bytes());
  device_->copy(*kept, *x);
  const auto kernel = load("add_one");
  kernel->bind({{1, 1, 1}, {64, 1, 1}, 0}, {of(*x), scalar<std::int32_t>(2)});
  device_->launch(*kernel, 3);
  EXPECT_EQ(download<int>(*device_, *x, 3), (std::vector<int>{4, 5, 3}));
  EXPECT_EQ(download<int>(*device_, *kept, 3), (std::vector<int>{1, 2, 3}));
  device_->fill(*x, 0xff);
  EXPECT_EQ(download<int>(*device_, *x, 3), (std::vector<int>{-1, -1, -1}));
  const auto resources = kernel->resources();
  EXPECT_EQ(resources.registers, 42);
  EXPECT_EQ(resources.shared_bytes, 512);
  EXPECT_EQ(resources.local_bytes, 16);
}

TEST_F(CudaTest, LongRunsGoAsGraphsAndNoLaunchIsLost) {
  const auto x = upload(*device_, std::vector<int>{0});
  const auto kernel = load("add_one");
  kernel->bind({{1, 1, 1}, {1, 1, 1}, 0}, {of(*x), scalar<std::int32_t>(1)});
  device_->launch(*kernel, 1000);
  EXPECT_EQ(count_("kernel"), 1000);
  EXPECT_GE(count_("cuGraphLaunch"), 10);
  EXPECT_LT(count_("cuLaunchKernel"), 300);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1000);
  const long instantiated = count_("cuGraphInstantiateWithFlags");
  device_->launch(*kernel, 1000);
  EXPECT_EQ(count_("cuGraphInstantiateWithFlags"), instantiated) << "the graph is kept for the next run";
  // other arguments, another graph
  const auto y = upload(*device_, std::vector<int>{0});
  kernel->bind({{1, 1, 1}, {1, 1, 1}, 0}, {of(*y), scalar<std::int32_t>(1)});
  device_->launch(*kernel, 1000);
  EXPECT_EQ(download<int>(*device_, *y, 1)[0], 1000);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 2000);
}

TEST_F(CudaTest, GraphsAreReleased) {
  const auto x = upload(*device_, std::vector<int>{0});
  {
    const auto kernel = load("add_one");
    kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
    device_->launch(*kernel, 1000);
  }
  EXPECT_EQ(count_("cuGraphExecDestroy"), count_("cuGraphInstantiateWithFlags"));
  EXPECT_EQ(count_("cuGraphDestroy"), count_("cuGraphInstantiateWithFlags"));
  EXPECT_EQ(count_("cuModuleUnload"), 1);
}

TEST_F(CudaTest, ARoundOfSeveralKernelsIsTakenDownAsOneGraph) {
  const auto x = upload(*device_, std::vector<int>{0}), y = upload(*device_, std::vector<int>{0});
  const auto kernel = load("add_one");
  const auto other = kernel->another();
  kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
  other->bind({}, {of(*y), scalar<std::int32_t>(1)});
  const LaunchRun runs[] = {{kernel.get(), 2}, {other.get(), 1}};
  const auto graph = device_->record_graph([&] { device_->launch_runs(runs); });
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(count_("kernel"), 0) << "nothing of it runs yet";
  for (int round = 0; round < 3; ++round) device_->launch_graph(*graph);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 6);
  EXPECT_EQ(download<int>(*device_, *y, 1)[0], 3);
  EXPECT_EQ(count_("cuLaunchKernel"), 3);
  EXPECT_EQ(count_("cuModuleLoadDataEx"), 1) << "the code is loaded once";
}

TEST_F(CudaTest, WithoutGraphsEveryLaunchIsQueuedByItself) {
  setenv("FAKE_CUDA_NO_GRAPHS", "1", 1);
  const auto x = upload(*device_, std::vector<int>{0});
  const auto kernel = load("add_one");
  kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
  device_->launch(*kernel, 1000);
  unsetenv("FAKE_CUDA_NO_GRAPHS");
  EXPECT_EQ(count_("cuLaunchKernel"), 1000);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1000);
}

TEST_F(CudaTest, ARefusedLaunchLeavesNoCaptureOpen) {
  const auto kernel = load("add_one");
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({{1, 1, 1}, {2048, 1, 1}, 0}, {of(*x), scalar<std::int32_t>(1)});
  EXPECT_EQ(fault_of([&] { device_->launch(*kernel, 1000); }), DeviceFault::launch);
  device_->synchronise();  // throws when the stream still captures
  kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
  device_->launch(*kernel, 1000);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1000);
}

TEST_F(CudaTest, DynamicSharedMemoryAbove48KiBIsRequestedFor) {
  const auto kernel = load("big_shared");
  kernel->bind({{1, 1, 1}, {32, 1, 1}, 100000}, {});
  device_->launch(*kernel);
  device_->synchronise();
  EXPECT_EQ(count_("cuFuncSetAttribute"), 1);
  kernel->bind({{1, 1, 1}, {32, 1, 1}, 1000}, {local(2000)});
  device_->launch(*kernel);
  EXPECT_EQ(count_("cuFuncSetAttribute"), 1) << "not needed for little";
  EXPECT_EQ(fault_of([&] { kernel->bind({{1, 1, 1}, {32, 1, 1}, 1 << 20}, {}); }), DeviceFault::launch);
}

TEST_F(CudaTest, LocalMemoryOfNoSizeIsNoArgument) {
  const auto kernel = load("add_one");
  const auto x = upload(*device_, std::vector<int>{0, 0});
  kernel->bind({}, {of(*x), local(0), scalar<std::int32_t>(2)});
  device_->launch(*kernel);
  EXPECT_EQ(download<int>(*device_, *x, 2), (std::vector<int>{1, 1}));
}

TEST_F(CudaTest, MarkersTellDeviceTime) {
  const auto kernel = load("add_one");
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
  const auto start = device_->make_marker(), stop = device_->make_marker();
  device_->record(*start);
  device_->launch(*kernel, 5);
  device_->record(*stop);
  EXPECT_TRUE(device_->passed(*stop));
  EXPECT_NEAR(device_->seconds_between(*start, *stop), 5e-5, 1e-9);
}

TEST_F(CudaTest, AKernelsFaultIsARuntimeFaultWhereverItSurfaces) {
  const auto kernel = load("fault_address");
  kernel->bind({}, {});
  device_->launch(*kernel);
  try {
    device_->synchronise();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::runtime);
    EXPECT_EQ(error.native_code(), 700);
    EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  // the context is poisoned: allocations and launches now repeat the kernel's fault, not one of their own
  EXPECT_EQ(fault_of([&] { device_->allocate(4); }), DeviceFault::runtime);
  EXPECT_EQ(fault_of([&] { device_->launch(*kernel); }), DeviceFault::runtime);
}

TEST_F(CudaTest, ALaunchTimeoutIsATimeout) {
  const auto kernel = load("endless");
  kernel->bind({}, {});
  device_->launch(*kernel);
  EXPECT_EQ(fault_of([&] { device_->synchronise(); }), DeviceFault::timeout);
}

TEST_F(CudaTest, AFaultSurfacesThroughMarkersToo) {
  const auto kernel = load("fault_address");
  kernel->bind({}, {});
  const auto marker = device_->make_marker();
  device_->launch(*kernel);
  device_->record(*marker);
  EXPECT_EQ(fault_of([&] { device_->passed(*marker); }), DeviceFault::runtime);
}

TEST_F(CudaTest, CodeThatDoesNotLoadOrLacksTheFunctionIsACompileFault) {
  EXPECT_EQ(fault_of([&] { load("broken"); }), DeviceFault::compile);
  EXPECT_EQ(fault_of([&] { device_->load({"add_one", "other", ""}); }), DeviceFault::compile);
}

TEST_F(CudaTest, TooLargeABufferIsOutOfMemory) {
  EXPECT_EQ(fault_of([&] { device_->allocate(std::size_t{1} << 50); }), DeviceFault::out_of_memory);
}

TEST_F(CudaTest, ThePrimaryContextIsGivenBack) {
  EXPECT_EQ(retained_(), 1);
  device_.reset();
  EXPECT_EQ(retained_(), 0);
}

TEST_F(CudaTest, QueuesRunSideBySideAndWaitForMarkers) {
  const auto x = upload(*device_, std::vector<int>{0}), y = upload(*device_, std::vector<int>{0});
  const auto to_x = load("add_one"), to_y = load("add_one");
  to_x->bind({}, {of(*x), scalar<std::int32_t>(1)});
  to_y->bind({}, {of(*y), scalar<std::int32_t>(1)});
  const auto slow = device_->make_queue(), other = device_->make_queue();
  const auto marker = device_->make_marker();
  hold_(slow->native_handle(), true);
  device_->launch(*to_x, 1, slow.get());
  device_->record(*marker, slow.get());
  device_->launch(*to_y, 1, other.get());
  EXPECT_EQ(count_("kernel"), 1) << "the other queue does not wait by itself";
  EXPECT_FALSE(device_->passed(*marker));
  device_->wait(*other, *marker);
  device_->launch(*to_y, 1, other.get());
  EXPECT_EQ(count_("kernel"), 1) << "what comes after the wait must not run yet";
  hold_(slow->native_handle(), false);
  EXPECT_TRUE(device_->passed(*marker));
  device_->synchronise();
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1);
  EXPECT_EQ(download<int>(*device_, *y, 1)[0], 2);
}

TEST_F(CudaTest, CopiesAndFillsGoToTheQueueThatIsNamed) {
  const auto x = upload(*device_, std::vector<int>{5}), y = upload(*device_, std::vector<int>{7});
  const auto queue = device_->make_queue();
  hold_(queue->native_handle(), true);
  device_->copy(*y, *x, queue.get());
  device_->fill(*x, 0xff, queue.get());
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 5);
  EXPECT_EQ(download<int>(*device_, *y, 1)[0], 7);
  hold_(queue->native_handle(), false);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], -1);
  EXPECT_EQ(download<int>(*device_, *y, 1)[0], 5);
}

TEST_F(CudaTest, SynchroniseWaitsForEveryQueueThatLives) {
  auto queue = device_->make_queue();
  const auto kernel = load("fault_address");
  kernel->bind({}, {});
  device_->synchronise();
  const long before = count_("cuStreamSynchronize");
  device_->synchronise();
  EXPECT_EQ(count_("cuStreamSynchronize"), before + 2);
  queue.reset();
  device_->synchronise();
  EXPECT_EQ(count_("cuStreamSynchronize"), before + 3);
  queue = device_->make_queue();
  device_->launch(*kernel, 1, queue.get());
  EXPECT_EQ(fault_of([&] { device_->synchronise(); }), DeviceFault::runtime);
}

QueueOptions part(std::uint32_t first, std::uint32_t count,
                  QueueOptions::Priority priority = QueueOptions::Priority::normal) {
  QueueOptions options;
  options.priority = priority;
  options.multiprocessors = count;
  options.first_multiprocessor = first;
  return options;
}

TEST_F(CudaTest, AQueueMayHaveMultiprocessorsForItself) {
  unsigned first = 99;
  auto queue = device_->make_queue(part(0, 64));
  auto other = device_->make_queue(part(64, 68, QueueOptions::Priority::high));
  EXPECT_EQ(multiprocessors_(queue->native_handle(), &first), 64u);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(multiprocessors_(other->native_handle(), &first), 68u);  // 8 groups of 8 and the 4 that are left
  EXPECT_EQ(first, 64u);
  EXPECT_EQ(priority_(other->native_handle()), -5);
  EXPECT_EQ(multiprocessors_(device_->make_queue()->native_handle(), &first), 0u);
  auto same = device_->make_queue(part(0, 64));
  EXPECT_EQ(greens_(), 2);  // those who ask for the same share it
  queue.reset();
  other.reset();
  EXPECT_EQ(greens_(), 1);
  same.reset();
  EXPECT_EQ(greens_(), 0);
}

TEST_F(CudaTest, LongRunsOnAPartOfTheDeviceAreNoGraphsOfTheWhole) {
  const auto kernel = load("add_one");
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({}, {of(*x), scalar(1)});
  const auto queue = device_->make_queue(part(0, 8));
  device_->launch(*kernel, 1000, queue.get());
  device_->synchronise();
  EXPECT_EQ(count_("cuGraphLaunch"), 0);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1000);
}

TEST_F(CudaTest, PartsThatTheDriverDoesNotGiveAreRefused) {
  const auto refusal = [&](const QueueOptions& options) {
    try {
      device_->make_queue(options);
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.fault(), DeviceFault::launch);
      return std::string(error.what());
    }
    return std::string("given");
  };
  EXPECT_THAT(refusal(part(0, 12)), HasSubstr("SMs 1 to 12 of 132"));
  EXPECT_THAT(refusal(part(0, 12)), HasSubstr("in multiples of 8, up to 128"));
  EXPECT_THAT(refusal(part(4, 8)), HasSubstr("5 to 12"));
  EXPECT_THAT(refusal(part(64, 72)), HasSubstr("65 to 136"));
  EXPECT_EQ(refusal(part(128, 4)), "given");
  EXPECT_EQ(refusal(part(0, 132)), "given");
}

TEST_F(CudaTest, AnOlderDriverGivesNoParts) {
  setenv("FAKE_CUDA_NO_PARTS", "1", 1);
  const auto old = open_device("cuda:0");
  EXPECT_EQ(old->info().properties.at("device.multiprocessor_unit").as_integer(), 0);
  EXPECT_EQ(fault_of([&] { old->make_queue(part(0, 8)); }), DeviceFault::unsupported);
  unsetenv("FAKE_CUDA_NO_PARTS");
}

TEST_F(CudaTest, PriorityIsAHintOfTheQueue) {
  EXPECT_EQ(priority_(device_->make_queue({QueueOptions::Priority::high})->native_handle()), -5);
  EXPECT_EQ(priority_(device_->make_queue()->native_handle()), 0);
}

TEST_F(CudaTest, WhatBelongsToOthersIsUsedAndNeverFreed) {
  auto* memory = reinterpret_cast<int*>(tensor_(sizeof(int), 0));
  *memory = 3;
  const auto theirs = device_->make_queue();
  const int streams = streams_();
  const long freed = count_("cuMemFree_v2");
  {
    const auto x = device_->wrap_buffer(memory, sizeof(int));
    const auto queue = device_->wrap_queue(theirs->native_handle());
    EXPECT_EQ(queue->native_handle(), theirs->native_handle());
    const auto kernel = load("add_one");
    kernel->bind({}, {of(*x), scalar<std::int32_t>(1)});
    device_->launch(*kernel, 1000, queue.get());
    device_->synchronise();
  }
  EXPECT_EQ(*memory, 1003);
  EXPECT_EQ(streams_(), streams);
  EXPECT_EQ(count_("cuMemFree_v2"), freed);
  std::free(memory);
}

TEST_F(CudaTest, MemoryOfAnotherDeviceOrOfNoneIsRefused) {
  int plain = 0;
  EXPECT_THROW(device_->wrap_buffer(&plain, sizeof plain), UserError);
  auto* elsewhere = reinterpret_cast<void*>(tensor_(64, 1));
  EXPECT_THAT(error_of([&] { device_->wrap_buffer(elsewhere, 64); }), HasSubstr("on cuda:1, and this is cuda:0"));
  EXPECT_EQ(device_of_memory(elsewhere), "cuda:1");
  EXPECT_EQ(device_of_memory(&plain), "");
  std::free(elsewhere);
}

TEST_F(CudaTest, WhatOthersHaveQueuedIsWaitedFor) {
  const auto theirs = device_->make_queue();
  const auto x = upload(*device_, std::vector<int>{1});
  hold_(theirs->native_handle(), true);
  device_->fill(*x, 0, theirs.get());
  EXPECT_THROW(device_->settle(), DeviceError) << "the fake driver says so where the real one would wait";
  hold_(theirs->native_handle(), false);
  device_->settle();
}

TEST_F(CudaTest, AViewIsAPartOfItsBuffer) {
  const auto whole = upload(*device_, std::vector<int>(2048, 1));
  const auto kernel = load("add_one");
  const auto view = device_->view(*whole, 4096, 8);
  kernel->bind({}, {of(*view), scalar<std::int32_t>(2)});
  device_->launch(*kernel);
  auto expected = std::vector<int>(2048, 1);
  expected[1024] = expected[1025] = 2;
  EXPECT_EQ(download<int>(*device_, *whole, 2048), expected);
  std::vector<int> two(2);
  device_->read(*whole, std::as_writable_bytes(std::span(two)), 4096 + 4);
  EXPECT_EQ(two, (std::vector<int>{2, 1}));
  const int nine = 9;
  device_->write(*whole, std::as_bytes(std::span(&nine, 1)), 4);
  EXPECT_EQ(download<int>(*device_, *whole, 2)[1], 9);
}

TEST_F(CudaTest, ADriverWithoutDevicesIsANote) {
  setenv("FAKE_CUDA_NO_DEVICE", "1", 1);
  std::vector<std::string> notes;
  const auto devices = list_devices(&notes);
  unsetenv("FAKE_CUDA_NO_DEVICE");
  EXPECT_NE(devices.front().backend, "cuda");
  EXPECT_THAT(notes, testing::Contains(HasSubstr("cuda: ")));
}

}  // namespace
