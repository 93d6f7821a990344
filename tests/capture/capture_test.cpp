// What libraries in other programs are made of: .npy headers, values as text, blocks to try, messages, and the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/kernel_source/signature.hpp"
#include "base/npy.hpp"
#include "capture/capture_folder.hpp"
#include "capture/messages.hpp"
#include "capture/scalar_type.hpp"
#include "temporary_folder.hpp"

namespace ergotune::capture {
namespace {

using testing::HasSubstr;

template <class T>
std::vector<std::byte> bytes_with(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Npy, HeadersComeBack) {
  EXPECT_TRUE(rc::check([](std::uint32_t count) {
    const std::string header = npy_header("<f4", count);
    const auto read = read_npy_header(header + "elements");
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->type == "<f4" && read->shape == std::vector<std::size_t>{count} && !read->fortran_order);
    RC_ASSERT(read->data_offset == header.size() && header.size() % 64 == 0);
  }));
}

TEST(Npy, WhatIsCutOffOrDamagedIsNone) {
  const std::string header = npy_header("<i8", 12);
  for (std::size_t size = 0; size < header.size(); ++size)
    EXPECT_FALSE(read_npy_header(header.substr(0, size))) << size;
  EXPECT_TRUE(rc::check([&](std::uint8_t at, char byte) {
    std::string damaged = header;
    damaged[at % damaged.size()] = byte;
    (void)read_npy_header(damaged);  // says something, and returns
  }));
}

// NumPy's own, format 2.0, two dimensions.
TEST(Npy, TheSecondFormatIsRead) {
  std::string text = "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 4), }\n";
  std::string file("\x93NUMPY\x02\x00", 8);
  file += static_cast<char>(text.size());
  file += std::string(3, '\0') + text;
  const auto header = read_npy_header(file);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->type, ">f8");
  EXPECT_TRUE(header->fortran_order);
  EXPECT_EQ(header->shape, (std::vector<std::size_t>{3, 4}));
}

TEST(CapturedValues, NumbersAsTextGiveTheSameBits) {
  EXPECT_TRUE(rc::check([](float f, double d, std::int64_t i) {
    const std::string as_float = number_text("float32", bytes_with<float>({f}));
    const std::string as_double = number_text("float64", bytes_with<double>({d}));
    RC_ASSERT(std::strtof(as_float.c_str(), nullptr) == f);
    RC_ASSERT(std::strtod(as_double.c_str(), nullptr) == d);
    RC_ASSERT(as_float.find_first_of(".e") != std::string::npos);  // for TOML a float, whatever its value
    if (i != INT64_MIN)
      RC_ASSERT(std::strtoll(number_text("int64", bytes_with<std::int64_t>({i})).c_str(), nullptr, 10) == i);
  }));
  EXPECT_EQ(number_text("float32", bytes_with<float>({0.0f / 0.0f})), "");
  EXPECT_EQ(number_text("uint64", bytes_with<std::uint64_t>({~std::uint64_t{0}})), "");
}

TEST(CapturedValues, TypesOfTheSource) {
  EXPECT_EQ(element_of("float4"), "float32");
  EXPECT_EQ(element_of("unsigned int"), "uint32");
  EXPECT_EQ(element_of("uchar16"), "uint8");
  EXPECT_EQ(element_of("struct grid"), "");
}

TEST(Blocks, SizesDivideTheGlobalSizeAndHoldThePresentOne) {
  EXPECT_TRUE(rc::check([](std::uint16_t global_less_one, std::uint16_t seed) {
    const std::size_t global = global_less_one + std::size_t{1};
    std::size_t present = seed % global + 1;
    while (global % present) --present;
    const auto sizes = block_sizes(global, present, 1024);
    RC_ASSERT(std::ranges::is_sorted(sizes));
    RC_ASSERT(std::ranges::find(sizes, present) != sizes.end());
    for (const std::size_t size : sizes) RC_ASSERT(global % size == 0 && (size <= 1024 || size == present));
  }));
}

TEST(Blocks, OnlyWordsOutsideOfCommentsTellThatTheBlockStays) {
  CapturedLaunch launch;
  launch.source =
      "// barrier(\n/* __local */ __kernel void f(__global int* x) { x[get_global_id(0)] = 1; printf(\"barrier\"); }";
  EXPECT_EQ(block_use(launch), BlockUse::none);
  launch.source += " int g() { int work_group_start = 0; return get_local_id(0) + work_group_start; }";
  EXPECT_EQ(block_use(launch), BlockUse::requested);
  launch.source += " void h() { barrier(1); }";
  EXPECT_EQ(block_use(launch), BlockUse::relied_on);
}

TEST(Blocks, OnlyWhatAKernelUsesTellThatItsBlockStays) {
  CapturedLaunch launch;
  launch.source = R"(
#define SYNC \
  barrier(1)
typedef struct { int x; } pair_t;
int helper(int i) { SYNC; return i; }
__kernel void plain(__global int* x) { if (x[0]) { x[get_global_id(0)] = 1; } }
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void fixed(__global int* x) { x[0] = 1; }
__kernel void locals(__global int* x, __local int* y) { x[0] = y[0]; }
__kernel void synced(__global int* x) { x[0] = helper(1); }
__kernel void asking(__global int* x)
{ // }
  x[get_group_id(0)] = '}';
}
)";
  const auto use = [&](const std::string& kernel) {
    launch.kernel = kernel;
    return block_use(launch);
  };
  EXPECT_EQ(use("plain"), BlockUse::none);
  EXPECT_EQ(use("asking"), BlockUse::requested);
  for (const char* kernel : {"fixed", "locals", "synced", "unknown"})
    EXPECT_EQ(use(kernel), BlockUse::relied_on) << kernel;
  launch.source =
      "extern \"C\" { namespace a { __device__ void d() { __syncthreads(); }\n__global__ void f(int* x) { *x = 1; } "
      "template <int N> __global__ void __launch_bounds__(32) g(int* x) { d(); } } }";
  EXPECT_EQ(use("f"), BlockUse::none);
  EXPECT_EQ(use("a::g<4>"), BlockUse::relied_on);
  launch.source += "\n#ifdef A\nvoid k() {\n#else\nvoid k(int) {\n#endif\n}";
  EXPECT_EQ(use("f"), BlockUse::relied_on) << "braces that do not close: all of the source counts";
  launch.source = "namespace cg = cooperative_groups; __global__ void f(int* x) { *x = 1; }";
  EXPECT_EQ(use("f"), BlockUse::relied_on);
}

TEST(Messages, ComeBackWholeAndAnEmptyOneIsRefused) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& strings) {
    Message message{"hello"};
    for (const std::string& text : strings)
      if (message.size() < 64) message.push_back(text);
    FrameCutter cutter(kKind);
    cutter.append(encode(message));
    RC_ASSERT(decode(*cutter.next()) == message);
  }));
  FrameCutter cutter(kKind);
  cutter.append(encode({}));
  EXPECT_THROW(decode(*cutter.next()), FormatError);
}

class Folder : public testing::Test {
 protected:
  std::string text(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static CapturedArgument buffer(const std::string& name, std::vector<float> before, std::vector<float> after,
                                 bool constant = false) {
    CapturedArgument argument;
    argument.name = name;
    argument.type = "float";
    argument.bytes = bytes_with(before);
    argument.after = bytes_with(after);
    argument.constant = constant;
    return argument;
  }
  const TemporaryFolder temporary_;
  const std::filesystem::path path_ = temporary_.path();
};

TEST_F(Folder, WhatChangedIsAnOutputAndWhatIsConstantAnInput) {
  CapturedLaunch launch;
  launch.kernel = "f";
  launch.program = "./app with\na line";
  launch.source = "__kernel void f() {}";
  launch.arguments = {buffer("a", {1, 2}, {1, 2}, true), buffer("b", {0, 0}, {3, 4}), buffer("b", {5, 6}, {5, 6})};
  EXPECT_TRUE(write_capture(launch, path_).empty());
  const std::string problem = text("problem.toml");
  EXPECT_THAT(problem, HasSubstr("# A launch of f captured from ./app with a line"));
  EXPECT_THAT(problem, HasSubstr("fill = { file = \"a.npy\" } },"));
  EXPECT_THAT(problem, HasSubstr("\"b\" = \"b.after.npy\""));
  // nothing promises that the third is not written: it must stay as it is
  EXPECT_THAT(problem, HasSubstr("\"b_2\" = \"b_2.npy\""));
  EXPECT_EQ(text("b.after.npy").size(), 64 + 64 + 8u);
}

TEST_F(Folder, TheSameMemoryTwiceIsOneBufferAndItsAddress) {
  CapturedLaunch launch;
  launch.arguments = {buffer("in", {1, 2}, {3, 4}, true), buffer("out", {1, 2}, {3, 4})};
  launch.arguments[0].memory = launch.arguments[1].memory = 7;
  (void)write_capture(launch, path_);
  const std::string address = "{ name = \"&out\", type = \"uint64\", value = 0 }";
  EXPECT_THAT(text("problem.toml"), HasSubstr("\"out\" = \"out.after.npy\""));
  EXPECT_THAT(text("problem.toml"), HasSubstr("name = \"in\", type = \"bytes\", fields = [" + address + "]"));
  EXPECT_FALSE(std::filesystem::exists(path_ / "in.npy"));
}

TEST_F(Folder, ACaptureReplacesAnotherWhole) {
  CapturedLaunch launch;
  launch.headers = {{"lib/a.h", "old"}, {"lib/old.h", ""}};
  for (const char* source : {"old", "new"}) {
    launch.source = launch.headers[0].second = source;
    (void)write_capture(launch, path_ / "room");
    move_capture(path_ / "room", path_ / "to");
    std::filesystem::remove_all(path_ / "room");
    launch.headers.pop_back();
  }
  EXPECT_EQ(text("to/kernel.cl"), "new");
  EXPECT_EQ(text("to/lib/a.h"), "new");
  // what cannot be replaced leaves no capture, and not half of another
  launch.headers = {{"lib", "a file where a folder was"}};
  (void)write_capture(launch, path_ / "room");
  EXPECT_THROW(move_capture(path_ / "room", path_ / "to"), std::filesystem::filesystem_error);
  EXPECT_FALSE(std::filesystem::exists(path_ / "to/problem.toml"));
}

TEST_F(Folder, NamesThatTheSourceUsesAreNoMacros) {
  CapturedLaunch launch;
  launch.source = "__kernel void f(int GLOBAL_SIZE_X) { int WORK_GROUP_X; }";
  (void)write_capture(launch, path_);
  EXPECT_THAT(text("problem.toml"), HasSubstr("ERGOTUNE_GLOBAL_SIZE_X % ERGOTUNE_WORK_GROUP_X == 0"));
}

TEST_F(Folder, ClustersOfTheLaunchStayAndOthersMayHaveThem) {
  CapturedLaunch launch;
  launch.language = "cuda";
  launch.source_file = "kernel.cubin";
  launch.compiled = launch.may_have_cluster = true;
  launch.shared_bytes = 40'000;
  launch.global = {512, 1, 1};
  launch.block = {256, 1, 1};
  (void)write_capture(launch, path_);
  EXPECT_THAT(text("problem.toml"), HasSubstr("CLUSTER_SIZE = { values = [1, 2, 4], default = 1 }"));
  EXPECT_THAT(text("problem.toml"), HasSubstr("GLOBAL_SIZE_X // WORK_GROUP_X % CLUSTER_SIZE == 0"));
  EXPECT_THAT(text("problem.toml"), Not(HasSubstr("MORE_SHARED_BYTES"))) << "there are 48 KiB";
  launch.may_have_cluster = false;
  launch.cluster = {2, 1, 1};
  launch.most_shared_bytes = 100'000;
  (void)write_capture(launch, path_);
  EXPECT_THAT(text("problem.toml"), HasSubstr("\"--cluster-size=2,1,1\""));
  EXPECT_THAT(text("problem.toml"), Not(HasSubstr("CLUSTER_SIZE")));
  EXPECT_THAT(text("problem.toml"), HasSubstr("MORE_SHARED_BYTES = { values = [0, 16384, 32768], default = 0 }"));
}

TEST_F(Folder, AValueWithoutANumberIsItsBytes) {
  CapturedLaunch launch;
  CapturedArgument value;
  value.kind = CapturedArgument::Kind::scalar;
  value.name = "v";
  value.type = "float2";
  value.bytes = bytes_with<float>({1.5f, 0.0f / 0.0f});
  launch.arguments = {value};
  (void)write_capture(launch, path_);
  EXPECT_THAT(text("problem.toml"),
              HasSubstr("type = \"float2\", fields = [{ name = \"s0\", type = \"uint32\", value = 1069547520 }"));
}

TEST(Signatures, OfTheSourceAndOfMangledNames) {
  const auto in_source = kernel_source::parameters_in_source(
      "void call() { f(1, 2); }\ntemplate <int N> __global__ void\nf(const float* __restrict__ x, float *const y, "
      "const unsigned int n, struct grid g, int z[]) { y[0] = x[0]; }",
      "f");
  ASSERT_TRUE(in_source);
  ASSERT_EQ(in_source->size(), 5u);
  EXPECT_EQ((*in_source)[0].name + "|" + (*in_source)[0].type, "x|float");
  EXPECT_TRUE((*in_source)[0].pointer && (*in_source)[0].constant);
  EXPECT_TRUE((*in_source)[1].pointer && !(*in_source)[1].constant);
  EXPECT_EQ((*in_source)[1].name, "y");
  EXPECT_EQ((*in_source)[2].name + "|" + (*in_source)[2].type, "n|unsigned int");
  EXPECT_EQ((*in_source)[3].name + "|" + (*in_source)[3].type, "g|grid");
  EXPECT_TRUE((*in_source)[4].pointer);
  EXPECT_FALSE(kernel_source::parameters_in_source("__global__ void g(int x) {}", "f"));
  const kernel_source::Demangled name = kernel_source::demangled("_Z5saxpyfPKfPfi");
  EXPECT_EQ(name.name, "saxpy");
  const auto mangled = kernel_source::parameters_of(name.list, false);
  ASSERT_EQ(mangled.size(), 4u);
  EXPECT_EQ(mangled[0].type, "float");
  EXPECT_TRUE(mangled[1].pointer && mangled[1].constant && !mangled[2].constant);
  EXPECT_EQ(kernel_source::demangled("_Z4busyILi500EEvPfi").name, "busy");
  EXPECT_EQ(kernel_source::demangled("plain").name, "plain");
  EXPECT_EQ(kernel_source::demangled("f").whole, "f") << "no type";
  EXPECT_TRUE(kernel_source::demangled("plain").list.empty());
}

TEST(Options, AreSplitOutsideOfQuotes) {
  EXPECT_EQ(split_options("  -DA=1 -I \"a folder\"  -D B='x y' "),
            (std::vector<std::string>{"-DA=1", "-I", "\"a folder\"", "-D", "B='x y'"}));
}

}  // namespace
}  // namespace ergotune::capture
