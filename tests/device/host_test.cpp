// The host backend: C, C++ and Fortran functions compiled and called for real.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "device/fortran.hpp"
#include "device_fixtures.hpp"
#include "temporary_folder.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

using Kind = Argument::Kind;

CompileJob job(Language language, const std::string& source, const std::string& function,
               std::vector<ArgumentSignature> arguments) {
  CompileJob job;
  job.language = language;
  job.source = source;
  job.source_name = "kernel.src";
  job.function = function;
  job.arguments = std::move(arguments);
  return job;
}

class HostTest : public testing::Test {
 protected:
  void run(const CompileJob& job, const std::vector<KernelArgument>& arguments) {
    const auto kernel = device_->load(open_compiler("host")->compile(job));
    kernel->bind({}, arguments);
    device_->launch(*kernel);
    device_->synchronise();
  }
  std::unique_ptr<Device> device_ = open_device("host");
};

// every scalar type once: what a cast of everything to an integer register would get wrong
const char* kAllTypes =
    "void all_types(double* out, float f, double d, signed char a, unsigned char b, short c, unsigned short e, int g,\n"
    "               unsigned int h, long i, unsigned long j, const double* in) {\n"
    "  out[0] = f; out[1] = d; out[2] = a; out[3] = b; out[4] = c; out[5] = e; out[6] = g; out[7] = h;\n"
    "  out[8] = (double)i; out[9] = (double)j; out[10] = in[0] * FACTOR;\n"
    "}\n";

void expect_all_types(Device& device, const CompileJob& all_types) {
  const auto out = upload(device, std::vector<double>(11, -1));
  const auto in = upload(device, std::vector<double>{21});
  const auto kernel = device.load(open_compiler("host")->compile(all_types));
  kernel->bind(
      {}, {of(*out), scalar(1.5f), scalar(-2.25), scalar<std::int8_t>(-3), scalar<std::uint8_t>(200),
           scalar<std::int16_t>(-30000), scalar<std::uint16_t>(60000), scalar<std::int32_t>(-7),
           scalar<std::uint32_t>(4000000000u), scalar<std::int64_t>(-9000000000), scalar<std::uint64_t>(10), of(*in)});
  device.launch(*kernel);
  EXPECT_THAT(download<double>(device, *out, 11),
              testing::ElementsAre(1.5, -2.25, -3, 200, -30000, 60000, -7, 4e9, -9e9, 10, 42));
}

std::vector<ArgumentSignature> all_types_signature() {
  std::vector<ArgumentSignature> signature{{Kind::buffer, ElementType::float64}};
  for (const auto type :
       {ElementType::float32, ElementType::float64, ElementType::int8, ElementType::uint8, ElementType::int16,
        ElementType::uint16, ElementType::int32, ElementType::uint32, ElementType::int64, ElementType::uint64})
    signature.push_back({Kind::scalar, type});
  signature.push_back({Kind::buffer, ElementType::float64});
  return signature;
}

TEST_F(HostTest, CFunctionsGetEveryScalarTypeByValue) {
  auto c = job(Language::c, kAllTypes, "all_types", all_types_signature());
  c.defines = {{"FACTOR", "2"}};
  expect_all_types(*device_, c);
}

TEST_F(HostTest, CppFunctionsToo) {
  auto cpp = job(Language::cpp, kAllTypes, "all_types", all_types_signature());
  cpp.defines = {{"FACTOR", "2"}};
  expect_all_types(*device_, cpp);
}

TEST_F(HostTest, CppTemplatesAreInstantiatedByName) {
  const char* source =
      "namespace n { template <int N, class T> void fill(T* x, T value) { for (int i = 0; i < N; ++i) x[i] = value; } "
      "}";
  const auto x = upload(*device_, std::vector<float>(5, 0));
  run(job(Language::cpp, source, "n::fill<4, float>",
          {{Kind::buffer, ElementType::float32}, {Kind::scalar, ElementType::float32}}),
      {of(*x), scalar(2.5f)});
  EXPECT_THAT(download<float>(*device_, *x, 5), testing::ElementsAre(2.5f, 2.5f, 2.5f, 2.5f, 0.f));
}

const char* kFortranBody =
    "subroutine Scale(x, factor, n)\n"
    "  real(4), intent(inout) :: x(*)\n"
    "  real(8), intent(in) :: factor\n"
    "  integer(4), intent(in) :: n\n"
    "  x(1:n) = x(1:n) * real(factor, 4) * FACTOR\n"
    "end subroutine\n";

TEST_F(HostTest, FortranSubroutinesByAnyOfTheirNames) {
  SKIP_WITHOUT_FORTRAN();
  const std::vector<ArgumentSignature> signature{
      {Kind::buffer, ElementType::float32}, {Kind::scalar, ElementType::float64}, {Kind::scalar, ElementType::int32}};
  std::string bound(kFortranBody);
  bound.replace(bound.find("n)\n"), 2, "n) bind(c, name=\"cScale\")");
  for (const auto& [source, function] :
       {std::pair<std::string, std::string>{kFortranBody, "Scale"},
        {bound, "cScale"},
        {std::string("module M\ncontains\n") + kFortranBody + "end module\n", "M::scale"}}) {
    auto fortran = job(Language::fortran, source, function, signature);
    fortran.defines = {{"FACTOR", "2"}};
    const auto x = upload(*device_, std::vector<float>{1, 2, 3});
    run(fortran, {of(*x), scalar(1.5), scalar(2)});
    EXPECT_THAT(download<float>(*device_, *x, 3), testing::ElementsAre(3, 6, 3)) << function;
  }
}

/// What the compiler says of a subroutine f with these dummies, called with these arguments; empty when all is well.
std::string refusal_of_fortran(const std::string& dummies, const std::string& declarations,
                               const std::vector<ArgumentSignature>& arguments, bool in_module,
                               const std::vector<std::string>& options = {}) {
  const std::string body = "subroutine f(" + dummies + ")\n" + declarations + "end subroutine\n";
  auto fortran = job(Language::fortran, in_module ? "module m\ncontains\n" + body + "end module\n" : body,
                     in_module ? "m::f" : "f", arguments);
  fortran.options = options;
  try {
    open_compiler("host")->compile(fortran);
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    return message.substr(0, message.find('\n'));
  }
  return {};
}

TEST_F(HostTest, FortranArgumentsAreComparedWithTheirDeclarations) {
  SKIP_WITHOUT_FORTRAN();
  const ArgumentSignature x{Kind::buffer, ElementType::float32, "x"}, n{Kind::scalar, ElementType::int32, "n"},
      bytes{Kind::buffer, ElementType::uint8, "x"}, wide{Kind::buffer, ElementType::float64, "x"};
  for (const bool in_module : {false, true}) {
    const auto refusal = [&](const std::string& declarations, std::vector<ArgumentSignature> arguments,
                             std::vector<std::string> options = {}) {
      return refusal_of_fortran("x, n", declarations, arguments, in_module, options);
    };
    const std::string size = "integer, intent(in) :: n\n", assumed = "  real(8) :: x(*)\n";
    EXPECT_EQ(refusal(size + assumed, {x, n}),
              "error: argument 'x' is declared float32, but the procedure takes real(8)");
    EXPECT_EQ(refusal("integer(8) :: n\nreal :: x(n)\n", {x, n}),
              "error: argument 'n' is declared int32, but the procedure takes integer(8)");
    EXPECT_THAT(refusal(size + "real :: x(:)\n", {x, n}), HasSubstr("an array that only Fortran can pass"));
    EXPECT_THAT(refusal(size + "real :: x(n)\n", {x}),
                HasSubstr("1 arguments are declared, but the procedure takes another"));
    EXPECT_EQ(refusal(size + "real :: x(n)\n", {x, n}), "");
    EXPECT_EQ(refusal("use iso_fortran_env\nimplicit none\n" + size + "real(real64) :: x(n, n)\n", {wide, n}), "");
    EXPECT_EQ(refusal(size + "real :: x\n", {x, n}), "") << "one number is a buffer of one";
    EXPECT_EQ(refusal(size + "complex :: x(n)\n", {x, n}), "") << "no declaration names it";
    EXPECT_EQ(refusal(size + assumed, {bytes, n}), "") << "bytes are whatever the procedure makes of them";
    EXPECT_EQ(refusal(size + "real :: x(n)\nx = n\n", {x, n}, {"-Wall", "-Werror", "-std=f95"}), "")
        << "the call is ours";
  }
}

TEST_F(HostTest, FortranValuesArePassedAlsoUnderABoundName) {
  SKIP_WITHOUT_FORTRAN();
  const auto fortran =
      job(Language::fortran,
          "module m\ncontains\nsubroutine inner(x, n) bind(c, name='outerName')\n  use iso_c_binding\n"
          "  integer(c_int), value :: n\n  real(c_float) :: x(n)\n  x = n\nend subroutine\nend module\n",
          "outerName", {{Kind::buffer, ElementType::float32}, {Kind::scalar, ElementType::int32}});
  const auto x = upload(*device_, std::vector<float>{0, 0});
  run(fortran, {of(*x), scalar(2)});
  EXPECT_THAT(download<float>(*device_, *x, 2), testing::ElementsAre(2, 2));
}

TEST_F(HostTest, StructuresArePassedByValueAndOfTheRightSize) {
  struct Grid {
    char flag;
    double step;
    std::int32_t counts[20];
  } grid{1, 2.5, {}};
  grid.counts[19] = 7;
  const std::string declares = "struct Grid { char flag; double step; int counts[20]; };\n";
  const std::string body = "void f(struct Grid g, float* x) { x[0] = g.flag + g.step + g.counts[19]; }\n";
  KernelArgument argument;
  const auto* bytes = reinterpret_cast<const std::byte*>(&grid);
  argument.scalar.assign(bytes, bytes + sizeof grid);
  for (const auto language : {Language::c, Language::cpp}) {
    ArgumentSignature structure{Kind::scalar, ElementType::float32, "g", "struct Grid", sizeof grid};
    const auto x = upload(*device_, std::vector<float>{0});
    run(job(language, declares + body, "f", {structure, {Kind::buffer, ElementType::float32}}), {argument, of(*x)});
    EXPECT_THAT(download<float>(*device_, *x, 1), testing::ElementsAre(10.5f));
    structure.bytes = 8;
    EXPECT_EQ(fault_of([&] {
                open_compiler("host")->compile(
                    job(language, declares + body, "f", {structure, {Kind::buffer, ElementType::float32}}));
              }),
              DeviceFault::compile);
  }
}

TEST_F(HostTest, CompileErrorsNameTheUsersFileAndLine) {
  for (const auto language : {Language::c, Language::cpp}) {
    try {
      open_compiler("host")->compile(job(language, "void f(void) {\n  undeclared_name = 1;\n}\n", "f", {}));
      FAIL();
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.fault(), DeviceFault::compile);
      EXPECT_THAT(error.what(), HasSubstr("kernel.src:2"));
      EXPECT_THAT(error.what(), HasSubstr("undeclared_name"));
    }
  }
}

TEST_F(HostTest, AWrongNumberOfArgumentsIsACompileFault) {
  for (const auto language : {Language::c, Language::cpp})
    EXPECT_EQ(fault_of([&] {
                open_compiler("host")->compile(
                    job(language, "void f(int a, int b) {}", "f", {{Kind::scalar, ElementType::int32}}));
              }),
              DeviceFault::compile);
}

// C and C++ would convert it, so that the kernel runs with another number.
TEST_F(HostTest, ARealNumberForAnIntegerIsACompileFault) {
  for (const auto language : {Language::c, Language::cpp}) {
    const auto compiles = [&](const char* function, ElementType type) {
      try {
        open_compiler("host")->compile(job(language, function, "f", {{Kind::scalar, type}}));
        return true;
      } catch (const DeviceError&) {
        return false;
      }
    };
    EXPECT_FALSE(compiles("void f(int a) { (void)a; }", ElementType::float32));
    EXPECT_TRUE(compiles("void f(int a) { (void)a; }", ElementType::int32));
    EXPECT_TRUE(compiles("void f(unsigned long a) { (void)a; }", ElementType::int32));
    EXPECT_TRUE(compiles("void f(double a) { (void)a; }", ElementType::float32));
  }
}

TEST_F(HostTest, OptionsReachTheCompiler) {
  auto c = job(Language::c, "void f(int* x) {\n#ifdef _OPENMP\n  x[0] = 1;\n#endif\n}\n", "f",
               {{Kind::buffer, ElementType::int32}});
  c.options = {"-fopenmp"};
  const auto x = upload(*device_, std::vector<int>{0});
  run(c, {of(*x)});
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1);
}

/// Lines of this process' memory map that belong to kernels.
int kernels_mapped() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("ergotune-kernel-") != std::string::npos;
  return count;
}

TEST_F(HostTest, WhatMayHaveStartedThreadsStaysLoaded) {
  // a machine with one core has a team of one: two are requested
  auto parallel = job(Language::c,
                      "void f(int* x) {\n#pragma omp parallel for num_threads(2)\n"
                      "  for (int i = 0; i < 100; ++i) x[i] += i;\n}\n",
                      "f", {{Kind::buffer, ElementType::int32}});
  parallel.options = {"-fopenmp"};
  auto plain = job(Language::c, "void f(int* x) { x[0] = 7; }", "f", {{Kind::buffer, ElementType::int32}});
  const auto x = upload(*device_, std::vector<int>(100, 0));
  const int before = kernels_mapped();
  run(plain, {of(*x)});
  EXPECT_EQ(kernels_mapped(), before) << "what starts none goes";
  run(parallel, {of(*x)});
  const int kept = kernels_mapped();
  EXPECT_GT(kept, before) << "its threads wait in libgomp, which goes with its last user";
  for (int i = 0; i < 20; ++i) run(parallel, {of(*x)});
  EXPECT_EQ(kernels_mapped(), kept) << "the next ones find the threads there";
}

/// What a compilation says; empty when it works.
std::string description_of(const CompileJob& job) {
  try {
    open_compiler("host")->compile(job);
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    return error.what();
  }
  return {};
}

TEST_F(HostTest, ABufferOfOtherNumbersThanTheFunctionTakesIsACompileFault) {
  for (const auto language : {Language::c, Language::cpp}) {
    const auto with = [&](const char* taken, ElementType declared) {
      return description_of(job(language, fmt::format("void f(int n, const {} x) {{}}", taken), "f",
                                {{Kind::scalar, ElementType::int32, "n"}, {Kind::buffer, declared, "x"}}));
    };
    EXPECT_THAT(with("double*", ElementType::float32), HasSubstr("error: ")) << "the kernel would read beyond its end";
    EXPECT_THAT(with("double*", ElementType::float32), HasSubstr("argument 'x' is declared float32"));
    EXPECT_THAT(with("float*", ElementType::int32), HasSubstr("argument 'x' is declared int32"));
    EXPECT_THAT(with("short*", ElementType::uint32), HasSubstr("argument 'x' is declared uint32"));
    // the same bits, or what cannot be told
    for (const auto& [taken, declared] : {std::pair<const char*, ElementType>{"double*", ElementType::float64},
                                          {"unsigned*", ElementType::int32},
                                          {"unsigned long long*", ElementType::int64},
                                          {"unsigned char*", ElementType::float32},
                                          {"void*", ElementType::float64},
                                          {"struct { float re, im; } *", ElementType::float32},
                                          {"float (*)[4]", ElementType::float32},
                                          {"unsigned short*", ElementType::float16}}) {
      std::string text = taken, before;
      if (text.starts_with("struct")) before = "typedef struct { float re, im; } pair;\n", text = "pair*";
      const bool rows = text.find("(*)") != std::string::npos;
      EXPECT_EQ(description_of(
                    job(language, before + (rows ? "void f(float (*x)[4]) {}" : fmt::format("void f({} x) {{}}", text)),
                        "f", {{Kind::buffer, declared, "x"}})),
                "")
          << taken;
    }
  }
}

TEST_F(HostTest, AFunctionThatIsNotThereIsNamedAlone) {
  const auto binary = open_compiler("host")->compile(job(Language::c, "void f(void);", "f", {}));
  try {
    device_->load(binary);
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_THAT(error.what(), HasSubstr("has a function or variable \"f\""));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("/"))) << "no name of a temporary file";
  }
}

TEST_F(HostTest, AScalarWhereTheFunctionTakesAPointerIsACompileFault) {
  for (const auto language : {Language::c, Language::cpp}) {
    EXPECT_NE(description_of(job(language, "void f(int* x) {}", "f", {{Kind::scalar, ElementType::int32, "x"}})), "");
    EXPECT_NE(description_of(job(language, "void f(int x) {}", "f", {{Kind::buffer, ElementType::int32, "x"}})), "");
  }
}

TEST_F(HostTest, ACompilerThatIsNotThereSaysWhichVariableToSet) {
  setenv("CC", "no-such-compiler-anywhere", 1);
  try {
    open_compiler("host")->compile(job(Language::c, "void f(void) {}", "f", {}));
    ADD_FAILURE();
  } catch (const UserError& error) {  // the machine's fault, no configuration's
    EXPECT_THAT(error.what(), HasSubstr("CC"));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  unsetenv("CC");
}

TEST_F(HostTest, TwoKernelsLoadedTogetherKeepApart) {
  const auto compile = [](int value) {
    auto c = job(Language::c, "static int state = VALUE;\nvoid f(int* x) { x[0] = state; }", "f",
                 {{Kind::buffer, ElementType::int32}});
    c.defines = {{"VALUE", std::to_string(value)}};
    return open_compiler("host")->compile(c);
  };
  const auto one = device_->load(compile(1)), two = device_->load(compile(2));
  const auto x = upload(*device_, std::vector<int>{0});
  one->bind({}, {of(*x)});
  two->bind({}, {of(*x)});
  device_->launch(*one);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 1);
  device_->launch(*two);
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 2);
}

TEST_F(HostTest, MoreMemoryThanThereIsIsOutOfMemory) {
  EXPECT_EQ(fault_of([&] { device_->allocate(std::size_t{1} << 50); }), DeviceFault::out_of_memory);
  EXPECT_EQ(fault_of([&] { device_->allocate(std::numeric_limits<std::size_t>::max()); }), DeviceFault::out_of_memory);
}

TEST_F(HostTest, PropertiesHaveEveryNameOfTheContract) {
  EXPECT_TRUE(device_->info().is_cpu);
  for (const auto& name : property_names()) EXPECT_TRUE(device_->info().properties.contains(name)) << name;
}

TEST_F(HostTest, TheIdentityNamesCompilersAndProcessor) {
  // -march=native: code of another processor must not come out of a shared cache
  const std::string identity = open_compiler("host")->identity();
  EXPECT_THAT(identity, HasSubstr(device_->info().name));
  EXPECT_GE(std::ranges::count(identity, '|'), 4);
}

TEST_F(HostTest, LocalMemoryIsScratch) {
  const auto x = upload(*device_, std::vector<int>{5});
  run(job(Language::c, "void f(int* x, int* scratch) { scratch[99] = x[0]; x[0] = scratch[99] + 1; }", "f",
          {{Kind::buffer, ElementType::int32}, {Kind::local_memory, ElementType::int32}}),
      {of(*x), local(400)});
  EXPECT_EQ(download<int>(*device_, *x, 1)[0], 6);
}

TEST_F(HostTest, QueuesRunInOrderAndForeignMemoryIsUsedInPlace) {
  const auto add = job(Language::c, "void add(int* x, int n) { for (int i = 0; i < n; ++i) ++x[i]; }", "add",
                       {{Kind::buffer, ElementType::int32}, {Kind::scalar, ElementType::int32}});
  std::vector<int> theirs{1, 2, 3};
  const auto kernel = device_->load(open_compiler("host")->compile(add));
  const auto queue = device_->make_queue({QueueOptions::Priority::high});
  const auto marker = device_->make_marker(), last = device_->make_marker();
  {
    const auto wrapped = device_->wrap_buffer(theirs.data(), sizeof(int) * theirs.size());
    EXPECT_EQ(wrapped->native_handle(), theirs.data());
    kernel->bind({}, {of(*wrapped), scalar<std::int32_t>(2)});
    device_->launch(*kernel, 2, queue.get());
    device_->record(*marker, queue.get());
    device_->wait(device_->main_queue(), *marker);
    device_->launch(*kernel);
    device_->record(*last);
    device_->synchronise();
  }
  EXPECT_EQ(theirs, (std::vector<int>{4, 5, 3})) << "and it is not freed";
  EXPECT_GE(device_->seconds_between(*marker, *last), 0);
  EXPECT_NE(device_->wrap_queue(nullptr), nullptr);
}

TEST_F(HostTest, AViewIsAPartOfItsBuffer) {
  const auto whole = upload(*device_, std::vector<int>(2048, 1));
  const auto view = device_->view(*whole, 4096, 8);
  device_->fill(*view, 0xff);
  auto expected = std::vector<int>(2048, 1);
  expected[1024] = expected[1025] = -1;
  EXPECT_EQ(download<int>(*device_, *whole, 2048), expected);
  std::vector<int> two(2);
  device_->read(*whole, std::as_writable_bytes(std::span(two)), 4096 + 4);
  EXPECT_EQ(two, (std::vector<int>{-1, 1}));
}

/// Whether a folder of this name and age in hours, left by a compiler that was killed, is still there after a
/// compilation.
bool stays(const std::string& name, int age) {
  const TemporaryFolder here;
  ::setenv("TMPDIR", here.path().c_str(), 1);
  const std::filesystem::path folder = here.path() / name;
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "kernel.c") << "void f(void) {}";
  std::filesystem::last_write_time(folder, std::filesystem::file_time_type::clock::now() - std::chrono::hours(age));
  open_compiler("host")->compile(job(Language::c, "void f(void) {}", "f", {}));
  return std::filesystem::exists(folder / "kernel.c");
}

TEST(HostLeftovers, AreRemovedAfterADay) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // once in a process: each look has its own
  EXPECT_EXIT(::exit(stays("ergotune-host-aB3xYz", 25)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::exit(stays("ergotune-host-aB3xYz", 1)), testing::ExitedWithCode(1), "")
      << "somebody may be compiling there";
  EXPECT_EXIT(::exit(stays("somebodys-host-aB3xYz", 25)), testing::ExitedWithCode(1), "");
}

}  // namespace
