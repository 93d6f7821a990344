// The OpenCL backend against whatever platform is here (PoCL in CI).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "device/opencl/opencl_program.hpp"
#include "device_fixtures.hpp"
#include "error_of.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

class OpenclTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = list_devices();
    for (const auto& device : devices)
      if (device.backend == "opencl") id_ = device.id;
    if (id_.empty()) GTEST_SKIP() << "no OpenCL device";
    device_ = open_device(id_);
  }
  CompileJob job(const std::string& source, const std::string& function) {
    CompileJob job;
    job.language = Language::opencl;
    job.source = source;
    job.source_name = "kernel.cl";
    job.function = function;
    return job;
  }
  std::string id_;
  std::unique_ptr<Device> device_;
};

const char* kScale = R"(
kernel void scale(global float* x, float factor, int n, local float* room) {
  int i = get_global_id(0);
  room[get_local_id(0)] = i < n ? x[i] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) x[i] = room[get_local_id(0)] * factor * SCALE;
}
)";

TEST_F(OpenclTest, KernelsRunWithBuffersScalarsAndLocalMemory) {
  auto scale = job(kScale, "scale");
  scale.defines = {{"SCALE", "(1.0f + 1.0f)"}};  // parentheses and spaces must survive
  const auto kernel = device_->load(device_->make_compiler()->compile(scale));
  std::vector<float> x(1000);
  std::iota(x.begin(), x.end(), 0.f);
  const auto buffer = upload(*device_, x);
  const auto kept = device_->allocate(buffer->bytes());
  device_->copy(*kept, *buffer);
  kernel->bind({{16, 1, 1}, {64, 1, 1}, 0}, {of(*buffer), scalar(1.5f), scalar(1000), local(64 * sizeof(float))});
  device_->launch(*kernel, 2);
  device_->synchronise();
  const auto y = download<float>(*device_, *buffer, 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_FLOAT_EQ(y[i], static_cast<float>(i) * 9);
  device_->copy(*buffer, *kept);
  EXPECT_EQ(download<float>(*device_, *buffer, 1000), x);
  device_->fill(*buffer, 0);
  EXPECT_EQ(download<float>(*device_, *buffer, 1000), std::vector<float>(1000, 0.f));
  EXPECT_GT(kernel->resources().max_threads_per_block, 0);
}

TEST_F(OpenclTest, BuildErrorsCarryTheCompilersWordsAndPlace) {
  auto broken = job("kernel void f(global int* x) {\n  x[0] = undeclared_name;\n}\n", "f");
  try {
    device_->make_compiler()->compile(broken);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_THAT(error.what(), HasSubstr("undeclared_name"));
    EXPECT_THAT(error.what(), HasSubstr("kernel.cl:2"));
  }
}

TEST_F(OpenclTest, AMissingKernelIsACompileFault) {
  EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(job("kernel void f() {}", "g")); }), DeviceFault::compile);
}

TEST_F(OpenclTest, CompiledCodeTravelsAndIsUsed) {
  const auto binary = open_compiler(id_)->compile(job("kernel void f(global int* x) { x[0] = 7; }", "f"));
  const auto portable = opencl::PortableProgram::unpack(binary.bytes);
  // PoCL makes a CPU's code at the first launch: nothing travels but the source.
  if (device_->info().is_cpu && portable.code.empty()) {
    EXPECT_THAT(portable.source, HasSubstr("x[0] = 7"));
    return;
  }
  EXPECT_EQ(opencl::PortableProgram::unpack(portable.pack()).source, portable.source);
  // its code alone must do: with a source that cannot compile, only the binary can have been used
  auto no_source = portable;
  no_source.source = "not OpenCL";
  const auto kernel = device_->load({no_source.pack(), binary.entry, ""});
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({}, {of(*x)});
  device_->launch(*kernel);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 7);
}

TEST_F(OpenclTest, ARejectedBinaryFallsBackToSource) {
  const auto binary = open_compiler(id_)->compile(job("kernel void f(global int* x) { x[0] = 9; }", "f"));
  auto portable = opencl::PortableProgram::unpack(binary.bytes);
  portable.code = "these are no instructions";
  const auto kernel = device_->load({portable.pack(), binary.entry, ""});
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({}, {of(*x)});
  device_->launch(*kernel);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 9);
}

TEST(PortableProgram, ComesBackAsItWasPacked) {
  const opencl::PortableProgram packed{"source\n", "-DX=1", {"/a", "/b c"}, std::string("\0code", 5)};
  const auto back = opencl::PortableProgram::unpack(packed.pack());
  EXPECT_EQ(back.source, packed.source);
  EXPECT_EQ(back.options, packed.options);
  EXPECT_EQ(back.include_folders, packed.include_folders);
  EXPECT_EQ(back.code, packed.code);
}

TEST_F(OpenclTest, CutOffBinariesAreRefused) {
  const auto binary = open_compiler(id_)->compile(job("kernel void f() {}", "f"));
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, std::size_t{25}, binary.bytes.size() - 1})
    EXPECT_EQ(fault_of([&] { device_->load({binary.bytes.substr(0, length), "f", ""}); }), DeviceFault::compile);
}

TEST_F(OpenclTest, TooLargeABlockIsALaunchFault) {
  const auto kernel = device_->load(device_->make_compiler()->compile(job("kernel void f() {}", "f")));
  const auto most =
      static_cast<std::uint32_t>(device_->info().properties.at("device.max_threads_per_block").as_integer());
  kernel->bind({{1, 1, 1}, {most * 2, 1, 1}, 0}, {});
  EXPECT_EQ(fault_of([&] { device_->launch(*kernel); }), DeviceFault::launch);
  try {
    device_->launch(*kernel);
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(most * 2) + " work items"));
    EXPECT_THAT(error.what(), HasSubstr(" at most on this device"));
  }
}

TEST_F(OpenclTest, AnotherNumberOfArgumentsIsALaunchFaultThatSaysBoth) {
  const auto kernel =
      device_->load(device_->make_compiler()->compile(job("kernel void f(global int* x, int n) {}", "f")));
  const auto x = upload(*device_, std::vector<int>{0});
  try {
    kernel->bind({}, {of(*x)});
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::launch);
    EXPECT_STREQ(error.what(), "the kernel takes 2 arguments, and the problem gives 1");
  }
}

TEST_F(OpenclTest, ArgumentsThatTheKernelDoesNotTakeAreCompileFaults) {
  auto f = job("kernel void f(global float* x, int n) {}", "f");
  for (const auto& [arguments, fit] : signatures()) {
    f.arguments = arguments;
    EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(f); }),
              fit ? std::nullopt : std::optional(DeviceFault::compile));
  }
}

TEST_F(OpenclTest, BuffersOfOtherNumbersThanTheKernelTakesAreCompileFaults) {
  for (const auto& [pointer, given, fits] : pointer_cases()) {
    auto f = job(fmt::format("kernel void f(global const {}* x) {{}}", pointer), "f");
    f.arguments = {{Argument::Kind::buffer, given, "x"}};
    EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(f); }),
              fits ? std::nullopt : std::optional(DeviceFault::compile))
        << pointer << " " << to_string(given);
  }
}

// A configuration that does without it.
TEST_F(OpenclTest, ABufferIsNoImage) {
  for (const char* type : {"read_only image2d_t", "sampler_t", "write_only image3d_t"}) {
    auto f = job(std::string("kernel void f(global int* image, ") + type + " x) {}", "f");
    f.arguments.resize(2);
    EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(f); }), DeviceFault::unsupported) << type;
  }
  auto plain = job("kernel void f(global int* image) {}", "f");
  plain.arguments.resize(1);
  plain.arguments[0].type = ElementType::int32;
  EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(plain); }), std::nullopt);
}

TEST_F(OpenclTest, LocalMemoryMayBeOfNoSize) {
  const auto kernel = device_->load(
      device_->make_compiler()->compile(job("kernel void f(local int* room, global int* x) { x[0] = 7; }", "f")));
  const auto x = upload(*device_, std::vector<int>{0});
  kernel->bind({}, {local(0), of(*x)});
  device_->launch(*kernel);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 7);
}

TEST_F(OpenclTest, AnArgumentOfTheWrongSizeIsALaunchFault) {
  const auto kernel = device_->load(device_->make_compiler()->compile(job("kernel void f(double x) {}", "f")));
  EXPECT_EQ(fault_of([&] { kernel->bind({}, {scalar(1.0f)}); }), DeviceFault::launch);
}

TEST_F(OpenclTest, TooLargeABufferIsOutOfMemory) {
  EXPECT_EQ(fault_of([&] { device_->allocate(std::size_t{1} << 50); }), DeviceFault::out_of_memory);
}

TEST_F(OpenclTest, MarkersMeasureWhatLiesBetweenThem) {
  auto spin = job(R"(
kernel void spin(global float* x, int rounds) {
  float v = x[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.5f;
  x[get_global_id(0)] = v;
})",
                  "spin");
  const auto kernel = device_->load(device_->make_compiler()->compile(spin));
  const auto x = upload(*device_, std::vector<float>(64, 1.f));
  const auto once = [&](int rounds, std::size_t count) {
    kernel->bind({{1, 1, 1}, {64, 1, 1}, 0}, {of(*x), scalar(rounds)});
    device_->launch(*kernel);
    device_->synchronise();
    const auto start = device_->make_marker(), stop = device_->make_marker();
    device_->record(*start);
    device_->launch(*kernel, count);
    device_->record(*stop);
    device_->synchronise();
    EXPECT_TRUE(device_->passed(*start));
    EXPECT_TRUE(device_->passed(*stop));
    return device_->seconds_between(*start, *stop);
  };
  // the least of several: on a busy machine a kernel waits for the processor now and then
  const auto time = [&](int rounds, std::size_t count) {
    double least = once(rounds, count);
    for (int i = 0; i < 9; ++i) least = std::min(least, once(rounds, count));
    return least;
  };
  const double one = time(100000, 1), four = time(100000, 4), small = time(1, 1);
  EXPECT_GT(one, 1e-4);
  EXPECT_GT(four, 2 * one);
  EXPECT_LT(small, one);
  const auto a = device_->make_marker(), b = device_->make_marker();
  device_->record(*a);
  device_->record(*b);
  EXPECT_EQ(device_->seconds_between(*a, *b), 0);
}

TEST_F(OpenclTest, PropertiesHaveEveryNameOfTheContract) {
  for (const auto& name : property_names()) EXPECT_TRUE(device_->info().properties.contains(name)) << name;
}

TEST_F(OpenclTest, TheIdentityNamesTheDriver) {
  EXPECT_THAT(open_compiler(id_)->identity(), HasSubstr(device_->info().driver_version));
}

const char* kSpin = R"(
kernel void spin(global float* x, int rounds) {
  float v = x[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.5f;
  x[get_global_id(0)] = v;
})";

// The first kernel ends well only when the second one runs beside it.
TEST_F(OpenclTest, QueuesRunSideBySide) {
  if (device_->info().is_cpu && device_->info().properties.at("device.multiprocessors").as_integer() < 2)
    GTEST_SKIP() << "one compute unit";
  const auto meet = job(R"(
kernel void await(global volatile int* flag, global int* met) {
  for (long i = 0; i < 4000000000L && !*met; ++i) *met = atomic_add(flag, 0);
}
kernel void raise(global volatile int* flag) { atomic_xchg(flag, 1); })",
                        "await");
  auto second = meet;
  second.function = "raise";
  const auto compiler = device_->make_compiler();
  const auto await = device_->load(compiler->compile(meet)), raise = device_->load(compiler->compile(second));
  const auto flag = upload(*device_, std::vector<int>{0}), met = upload(*device_, std::vector<int>{0});
  await->bind({}, {of(*flag), of(*met)});
  raise->bind({}, {of(*flag)});
  const auto queue = device_->make_queue({QueueOptions::Priority::high});
  device_->launch(*await);
  device_->launch(*raise, 1, queue.get());
  device_->synchronise();
  EXPECT_EQ(download<int>(*device_, *met, 1)[0], 1);
}

// Two work-groups that wait for each other meet only where both run at once: on two compute units, not on one.
TEST_F(OpenclTest, AQueueMayHaveComputeUnitsForItself) {
  const auto& properties = device_->info().properties;
  if (properties.at("device.multiprocessor_unit").as_integer() != 1 ||
      properties.at("device.multiprocessors").as_integer() < 2)
    GTEST_SKIP() << "one compute unit, or a device that is not taken apart";
  const auto kernel = device_->load(device_->make_compiler()->compile(job(R"(
kernel void meet(global volatile int* here, global int* met, int patience) {
  atomic_inc(here);
  int seen = 0;
  for (int i = 0; i < patience && seen < 2; ++i) seen = atomic_add(here, 0);
  met[get_global_id(0)] = seen < 2 ? 0 : 1;
})",
                                                                          "meet")));
  const auto met_on = [&](std::uint32_t first, std::uint32_t count, int patience) {
    QueueOptions options;
    options.multiprocessors = count;
    options.first_multiprocessor = first;
    const auto queue = device_->make_queue(options);
    const auto here = upload(*device_, std::vector<int>{0}), met = upload(*device_, std::vector<int>{0, 0});
    kernel->bind({{2, 1, 1}, {1, 1, 1}, 0}, {of(*here), of(*met), scalar(patience)});
    device_->launch(*kernel, 1, queue.get());
    device_->synchronise();
    const auto found = download<int>(*device_, *met, 2);
    return found[0] + found[1];
  };
  EXPECT_EQ(met_on(0, 2, 2000000000), 2);
  EXPECT_EQ(met_on(0, 1, 200000), 1);  // the first ran and ended by itself, the second found it gone by
  EXPECT_EQ(met_on(1, 1, 200000), 1);
  EXPECT_EQ(fault_of([&] { met_on(1, 100000, 1); }), DeviceFault::launch);
}

// A slow kernel on one queue, and on another one that reads what it wrote.
TEST_F(OpenclTest, AQueueWaitsForAMarkerOfAnother) {
  auto twice = job("kernel void twice(global float* x) { x[get_global_id(0)] *= 2; }", "twice");
  const auto compiler = device_->make_compiler();
  const auto spin = device_->load(compiler->compile(job(kSpin, "spin")));
  const auto both = device_->load(compiler->compile(twice));
  const auto x = upload(*device_, std::vector<float>(64, 0.f));
  const auto queue = device_->make_queue();
  spin->bind({{1, 1, 1}, {64, 1, 1}, 0}, {of(*x), scalar(500000)});
  both->bind({{1, 1, 1}, {64, 1, 1}, 0}, {of(*x)});
  const auto marker = device_->make_marker(), start = device_->make_marker(), stop = device_->make_marker();
  device_->wait(*queue, *marker);  // never recorded: nothing to wait for
  for (int i = 0; i < 3; ++i) {
    device_->fill(*x, 0);
    device_->record(*start);
    device_->launch(*spin);
    device_->record(*marker);
    device_->wait(*queue, *marker);
    device_->launch(*both, 1, queue.get());
    device_->record(*marker, queue.get());
    device_->wait(device_->main_queue(), *marker);
    device_->record(*stop);
    const auto found = download<float>(*device_, *x, 1)[0];  // by the main queue, which waits as well
    EXPECT_NEAR(found, 1000.f, 1.f);                         // v = 0.999 v + 0.5 ends at 500
    EXPECT_TRUE(device_->passed(*stop));
    EXPECT_GT(device_->seconds_between(*start, *stop), 0);
  }
}

TEST_F(OpenclTest, WhatBelongsToOthersIsUsedAndNeverFreed) {
  const auto theirs = upload(*device_, std::vector<float>(16, 3.f));
  const auto their_queue = device_->make_queue();
  const auto spin = device_->load(device_->make_compiler()->compile(job(kSpin, "spin")));
  {
    const auto x = device_->wrap_buffer(theirs->native_handle(), theirs->bytes());
    const auto queue = device_->wrap_queue(their_queue->native_handle());
    spin->bind({{1, 1, 1}, {16, 1, 1}, 0}, {of(*x), scalar(1)});
    device_->launch(*spin, 1, queue.get());
    device_->synchronise();
  }
  EXPECT_FLOAT_EQ(download<float>(*device_, *theirs, 16)[15], 3 * 0.999f + 0.5f);
  device_->fill(*theirs, 0, their_queue.get());
  device_->synchronise();
  EXPECT_EQ(download<float>(*device_, *theirs, 16)[0], 0.f);
  EXPECT_THROW(device_->wrap_buffer(theirs->native_handle(), 65), UserError) << "it has 64 bytes";
  const auto elsewhere = open_device(id_);
  const auto foreign = elsewhere->allocate(64);
  EXPECT_THROW(device_->wrap_buffer(foreign->native_handle(), 64), UserError);
  EXPECT_THROW(device_->wrap_queue(elsewhere->main_queue().native_handle()), UserError);
}

TEST_F(OpenclTest, AViewIsABufferOfItsOwnForAKernel) {
  const auto kernel = device_->load(
      device_->make_compiler()->compile(job("kernel void f(global int* x) { x[get_global_id(0)] = 7; }", "f")));
  const auto whole = upload(*device_, std::vector<int>(2048, 1));
  const auto view = device_->view(*whole, 4096, 12);
  kernel->bind({{1, 1, 1}, {3, 1, 1}, 0}, {of(*view)});
  device_->launch(*kernel);
  device_->synchronise();
  auto expected = std::vector<int>(2048, 1);
  expected[1024] = expected[1025] = expected[1026] = 7;
  EXPECT_EQ(download<int>(*device_, *whole, 2048), expected);
  EXPECT_EQ(download<int>(*device_, *view, 3), (std::vector<int>{7, 7, 7}));
  std::vector<int> two(2);
  device_->read(*whole, std::as_writable_bytes(std::span(two)), 4096 + 8);
  EXPECT_EQ(two, (std::vector<int>{7, 1}));
}

// No quoting of a space is understood by every driver; PoCL 3.1 understands none.
TEST_F(OpenclTest, HeadersAreFoundInFoldersWithAnyName) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ergotune include \"" + std::to_string(::getpid()) + "' $x");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "factor.h") << "#define FACTOR 7\n";
  std::ofstream(folder / "broken.h") << "this is no C\n";
  auto with = job("#include \"factor.h\"\nkernel void k(global int* x) { x[0] = FACTOR; }", "k");
  with.include_folders = {"/usr/include", folder.string()};
  const auto binary = device_->make_compiler()->compile(with);
  auto portable = opencl::PortableProgram::unpack(binary.bytes);
  EXPECT_EQ(portable.include_folders, with.include_folders);
  portable.code.clear();  // a driver that does not take its binaries back compiles again
  for (const auto& bytes : {binary.bytes, portable.pack()}) {
    const auto kernel = device_->load({bytes, binary.entry, ""});
    const auto buffer = upload(*device_, std::vector<int>{0});
    kernel->bind({{1, 1, 1}, {1, 1, 1}, 0}, {of(*buffer)});
    device_->launch(*kernel);
    device_->synchronise();
    EXPECT_EQ(download<int>(*device_, *buffer, 1)[0], 7);
  }
  with.source = "#include \"broken.h\"\n" + with.source;
  EXPECT_THAT(error_of<DeviceError>([&] { device_->make_compiler()->compile(with); }),
              HasSubstr((folder / "broken.h").string()))
      << "its own name, not the link's";
  std::filesystem::remove_all(folder);
}

}  // namespace
