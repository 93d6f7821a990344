// The OpenCL backend against whatever platform is here (PoCL in CI).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "device/opencl_program.hpp"
#include "device_fixtures.hpp"

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
  kernel->bind({{16, 1, 1}, {64, 1, 1}, 0},
               {of(*buffer), scalar(1.5f), scalar(1000), local(64 * sizeof(float))});
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
  EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(job("kernel void f() {}", "g")); }),
            DeviceFault::compile);
}

TEST_F(OpenclTest, AnotherLanguageIsUnsupported) {
  auto cuda = job("__global__ void f() {}", "f");
  cuda.language = Language::cuda;
  EXPECT_EQ(fault_of([&] { device_->make_compiler()->compile(cuda); }), DeviceFault::unsupported);
}

TEST_F(OpenclTest, CompiledCodeTravelsAndIsUsed) {
  const auto binary = open_compiler(id_)->compile(job("kernel void f(global int* x) { x[0] = 7; }", "f"));
  const auto portable = opencl::PortableProgram::unpack(binary.bytes);
  EXPECT_FALSE(portable.code.empty()) << "the driver gives no binaries";
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

TEST_F(OpenclTest, CutOffBinariesAreRefused) {
  const auto binary = open_compiler(id_)->compile(job("kernel void f() {}", "f"));
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, std::size_t{25}, binary.bytes.size() - 1})
    EXPECT_EQ(fault_of([&] {
                device_->load({binary.bytes.substr(0, length), "f", ""});
              }),
              DeviceFault::compile);
}

TEST_F(OpenclTest, TooLargeABlockIsALaunchFault) {
  const auto kernel = device_->load(device_->make_compiler()->compile(job("kernel void f() {}", "f")));
  const auto most =
      static_cast<std::uint32_t>(device_->info().properties.at("device.max_threads_per_block").as_integer());
  kernel->bind({{1, 1, 1}, {most * 2, 1, 1}, 0}, {});
  EXPECT_EQ(fault_of([&] { device_->launch(*kernel); }), DeviceFault::launch);
}

TEST_F(OpenclTest, AnArgumentOfTheWrongSizeIsALaunchFault) {
  const auto kernel =
      device_->load(device_->make_compiler()->compile(job("kernel void f(double x) {}", "f")));
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
  const auto time = [&](int rounds, std::size_t count) {
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
  const double one = time(2000000, 1), four = time(2000000, 4), small = time(1, 1);
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
  try {
    device_->make_compiler()->compile(with);
    ADD_FAILURE() << "a broken header compiled";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder / "broken.h").string())) << "its own name, not the link's";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
