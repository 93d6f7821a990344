// Kernels as an application launches them, on PoCL: through the C++ header, on a context and queue of the application's
// own.
#include "ergotune/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.hpp"
#include "base/process/process.hpp"
#include "device/opencl/opencl_platform.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "kernel/wisdom_key.hpp"
#include "launcher/background.hpp"
#include "launcher/held_clocks.hpp"
#include "launcher/launch_table.hpp"
#include "temporary_folder.hpp"

namespace ergotune::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace opencl;

// What it writes says which configuration ran, and for which size the code was compiled.
const char* kProblem = R"(
name = "mark"
[constants]
n = 1024
offset = 0
[parameters]
block = [16, 32, 64]
variant = [0, 1, 2, 3]
demand = [0, 48]
[kernel]
function = "mark"
source = "mark.cl"
arguments = [
  { name = "count", type = "int32", value = "n" },
  { name = "add", type = "int32", value = "offset" },
  { name = "out", type = "int32", count = "n", access = "read_write" },
  { name = "scratch", type = "int32", local_count = "block" },
]
[kernel.launch]
global = ["n"]
block = ["block"]
)";
const char* kSource = R"(
#if demand
__attribute__((reqd_work_group_size(demand, 1, 1)))
#endif
kernel void mark(int count, int add, global int* out, local int* scratch) {
#if variant == 3
  this does not compile;
#endif
  int i = get_global_id(0);
  scratch[get_local_id(0)] = out[i];
  if (i < count) out[i] = scratch[get_local_id(0)] + 1000 * variant + get_local_size(0) + add;
}
)";

struct Application : testing::Test {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  std::unique_ptr<Context> context;
  DeviceEntry device;
  cl_command_queue queue = nullptr;
  std::vector<std::string> warnings;
  std::mutex warning;

  void SetUp() override {
    const auto devices = find_devices();
    if (devices.empty()) GTEST_SKIP() << "no OpenCL device";
    device = devices.front();
    context = std::make_unique<Context>(device);
    cl_int code = 0;
    queue = api().clCreateCommandQueue(context->get(), device.device, 0, &code);
    write_file(folder / "mark.toml", kProblem);
    write_file(folder / "mark.cl", kSource);
    for (const char* name : {"ERGOTUNE_WISDOM", "ERGOTUNE_DEVICE_NAME", "ERGOTUNE_CAPTURE", "ERGOTUNE_OBJECTIVE"})
      ::unsetenv(name);
  }
  void TearDown() override {
    if (queue) api().clReleaseCommandQueue(queue);
  }
  Options options() {
    Options given;
    given.cache = (folder / "cache").string();
    given.warn = [this](const std::string& message) {
      const std::lock_guard lock(warning);
      warnings.push_back(message);
    };
    return given;
  }
  /// The problem with something else in it.
  void write_problem(const std::string& from, const std::string& to) {
    std::string problem = *read_file(folder / "mark.toml");
    problem.replace(problem.find(from), from.size(), to);
    write_file(folder / "mark.toml", problem);
  }
  Kernel capturing() {
    ::setenv("ERGOTUNE_CAPTURE", "*", 1);
    ::setenv("ERGOTUNE_CAPTURE_DIR", (folder / "captured").c_str(), 1);
    Kernel kernel(file(), options());
    ::unsetenv("ERGOTUNE_CAPTURE");
    ::unsetenv("ERGOTUNE_CAPTURE_DIR");
    return kernel;
  }
  std::string file() const { return (folder / "mark.toml").string(); }
  cl_mem buffer(std::size_t n) {
    std::vector<int> zeros(n);
    cl_int code = 0;
    const cl_mem memory = api().clCreateBuffer(context->get(), CL_MEM_READ_WRITE, n * sizeof(int), nullptr, &code);
    api().clEnqueueWriteBuffer(queue, memory, 1, 0, n * sizeof(int), zeros.data(), 0, nullptr, nullptr);
    return memory;
  }
  /// What the first and the last element are after one launch.
  std::pair<int, int> run(const Kernel& kernel, int n, int add = 0) {
    const cl_mem memory = buffer(static_cast<std::size_t>(n));
    kernel(queue, n, add, memory);
    std::vector<int> values(static_cast<std::size_t>(n));
    api().clEnqueueReadBuffer(queue, memory, 1, 0, values.size() * sizeof(int), values.data(), 0, nullptr, nullptr);
    api().clReleaseMemObject(memory);
    return {values.front(), values.back()};
  }
  WisdomRecord record(int block, int variant, std::vector<std::int64_t> size = {1024}, int demand = 0) {
    const Problem problem = load_problem(folder / "mark.toml");
    WisdomRecord r;
    r.configuration = {{"block", block}, {"variant", variant}, {"demand", demand}};
    r.problem_size = std::move(size);
    r.score = 1;
    r.device = wisdom_device(device.info);
    r.source_hash = source_hash(problem, problem.kernel(), "opencl", problem.constants);
    return r;
  }
  void wise(const std::vector<WisdomRecord>& records) { add_to_wisdom(folder / "wisdom", "mark", records); }
  nlohmann::json why(const Kernel& kernel, int n) {
    const cl_mem none = nullptr;
    return nlohmann::json::parse(kernel.why(queue, n, 0, none));
  }
};

TEST_F(Application, RunsTheDefaultWithoutWisdomAndTheTunedWithIt) {
  {
    const Kernel kernel(file(), options());
    EXPECT_EQ(run(kernel, 1024), std::pair(16, 16));
    EXPECT_TRUE(why(kernel, 1024)["is_default"]);
    EXPECT_THAT(why(kernel, 1024)["reason"].get<std::string>(), HasSubstr("no wisdom of this kernel"));
    wise({record(64, 2)});
    EXPECT_EQ(run(kernel, 1024), std::pair(16, 16)) << "wisdom is read once";
    kernel.reload();
    EXPECT_EQ(run(kernel, 1024), std::pair(2064, 2064)) << "until it is asked to read it again";
  }
  const Kernel kernel(file(), options());
  EXPECT_EQ(run(kernel, 1024, 7), std::pair(2071, 2071));
  EXPECT_EQ(run(kernel, 2048), std::pair(2064, 2064));
  const auto answer = why(kernel, 2048);
  EXPECT_EQ(answer["configuration"], nlohmann::json({{"block", 64}, {"variant", 2}, {"demand", 0}}));
  EXPECT_EQ(answer["match"], "near size");
  EXPECT_EQ(answer["distance"], 1);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(Application, AnArgumentOfAnotherKindIsRefused) {
  write_problem("\"out\", type", "\"scale\", type = \"float32\", value = 1 },\n  { name = \"out\", type");
  std::string source = kSource;
  source.replace(source.find("int add,"), 8, "int add, float scale,");
  write_file(folder / "mark.cl", source);
  const Kernel kernel(file(), options());
  const cl_mem memory = buffer(64);
  EXPECT_NO_THROW(kernel(queue, 64, 0u, 1.0f, memory));
  api().clFinish(queue);
  EXPECT_THROW(kernel(queue, 64, 1e-44f, 1.0f, memory), LaunchError);
  EXPECT_THROW(kernel(queue, 64, 0, 1, memory), LaunchError);
  EXPECT_THROW(kernel(queue, 64, 0, 1.0f, 1.0), LaunchError) << "a buffer";
  EXPECT_THROW(kernel.prepare(queue, 64.0f, 0, 1.0f, memory), LaunchError);
  EXPECT_THROW(kernel.why(queue, 64, 0.0f, 1.0f, memory), LaunchError);
  api().clReleaseMemObject(memory);
}

TEST_F(Application, AFolderOfWisdomThatDoesNotExistIsNamed) {
  ::setenv("ERGOTUNE_WISDOM", (folder / "nowhere").c_str(), 1);
  const Kernel kernel(file(), options());
  ::unsetenv("ERGOTUNE_WISDOM");
  for (const int n : {1024, 2048}) EXPECT_EQ(run(kernel, n), std::pair(16, 16));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("nowhere"));
  EXPECT_THAT(why(kernel, 1024)["reason"].get<std::string>(), HasSubstr("nowhere"));
}

// A size that the source does not name is no code of its own.
TEST_F(Application, EverySizeRunsTheSameCodeAndFindsItOnDisk) {
  const auto files = [&] {
    return std::count_if(std::filesystem::recursive_directory_iterator(folder / "cache"), {},
                         [](const auto& entry) { return entry.is_regular_file(); });
  };
  {
    const Kernel kernel(file(), options());
    for (const int n : {64, 128, 4096}) EXPECT_EQ(run(kernel, n), std::pair(16, 16));
  }
  EXPECT_EQ(files(), 1);
  const Kernel again(file(), options());
  EXPECT_EQ(run(again, 256), std::pair(16, 16));
  EXPECT_EQ(files(), 1);
}

TEST_F(Application, AConstantThatIsABlocksSizeDecidesEachLaunch) {
  write_problem("block = [\"block\"]", "block = [\"offset\"]");
  write_problem("local_count = \"block\"", "local_count = 64");
  const Kernel kernel(file(), options());
  EXPECT_EQ(run(kernel, 1024, 16), std::pair(32, 32));
  EXPECT_EQ(run(kernel, 1024, 32), std::pair(64, 64));
}

TEST_F(Application, AStaleRecordIsNotUsedAndNotInSilence) {
  wise({record(64, 2)});
  write_file(folder / "mark.cl", std::string(kSource) + "\n#define MORE 1\n");
  const Kernel kernel(file(), options());
  EXPECT_EQ(run(kernel, 1024), std::pair(16, 16));
  EXPECT_EQ(run(kernel, 512), std::pair(16, 16));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("stale"));
  EXPECT_THAT(why(kernel, 1024)["reason"].get<std::string>(), HasSubstr("stale"));
}

TEST_F(Application, WhatCannotBeLaunchedFallsBackOnceAndIsRemembered) {
  wise({record(32, 1, {1024}, 48)});  // the source demands a block of 48
  const Kernel kernel(file(), options());
  EXPECT_EQ(run(kernel, 1024), std::pair(16, 16));
  EXPECT_EQ(run(kernel, 1024), std::pair(16, 16));
  EXPECT_EQ(run(kernel, 2048), std::pair(16, 16)) << "another size does not try it again";
  ASSERT_GE(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("cannot be launched here"));
  EXPECT_THAT(why(kernel, 2048)["reason"].get<std::string>(), HasSubstr("it failed here"));
}

TEST_F(Application, InTheBackgroundSomethingCompiledRunsMeanwhile) {
  { EXPECT_EQ(run(Kernel(file(), options()), 1024), std::pair(16, 16)); }  // the default is on disk now
  wise({record(64, 2)});
  Options given = options();
  given.background = true;
  const Kernel kernel(file(), given);
  const auto first = run(kernel, 1024);
  EXPECT_TRUE(first == std::pair(16, 16) || first == std::pair(2064, 2064)) << first.first;
  kernel.prepare(queue, 1024, 0, cl_mem(nullptr));
  EXPECT_EQ(run(kernel, 1024), std::pair(2064, 2064));
  EXPECT_THAT(warnings, IsEmpty());
}

/// The shim below this very program (tests/fakes/faults): true in the process that is to fail.
bool below_the_shim(const std::string& fault) {
  if (::getenv("ERGOTUNE_FAULT")) return true;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  ProcessOptions options;
  options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"},
                         {"ERGOTUNE_FAULT", fault}};
  options.timeout = 60;
  const auto result =
      run_process({own_program(), fmt::format("--gtest_filter={}.{}", test->test_suite_name(), test->name())}, options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return false;
}

TEST(Background, WithoutAThreadItSaysSo) {
  if (!below_the_shim("call=thread,nth=1,error=11")) return;
  Background background;
  std::promise<void> done;
  EXPECT_FALSE(background.add([] { FAIL() << "nobody waits for this one"; }));
  EXPECT_TRUE(background.add([&] { done.set_value(); })) << "and the next time it may be had";
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Background, CanBeDestroyedInAForkedProcess) {
  std::unique_ptr<Background, Background::Delete> background(new Background);
  std::promise<void> done;
  ASSERT_TRUE(background->add([&] { done.set_value(); }));
  done.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    background.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Application, WisdomThatIsCutOrNoFileAndACacheThatIsNoneCostNoLaunch) {
  wise({record(64, 2)});
  const auto wisdom = folder / "wisdom" / "mark.wisdom";
  const std::string whole = read_file(wisdom).value();
  write_file(folder / "nowhere", "a file");
  Options given = options();
  given.cache = (folder / "nowhere").string();
  for (std::size_t length = 0; length < whole.size(); length += whole.size() / 6) {
    std::ofstream(wisdom) << whole.substr(0, length);  // as who does not rename writes it
    EXPECT_EQ(run(Kernel(file(), given), 1024), std::pair(16, 16)) << length;
  }
  std::filesystem::remove(wisdom);
  std::filesystem::create_directory(wisdom);
  warnings.clear();
  EXPECT_EQ(run(Kernel(file(), given), 1024), std::pair(16, 16));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("cannot be read"));
  // an application whose standard error takes nothing
  const int kept = ::dup(STDERR_FILENO), full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ::dup2(full, STDERR_FILENO);
  given.warn = {};
  EXPECT_EQ(run(Kernel(file(), given), 1024), std::pair(16, 16));
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(full);
}

TEST_F(Application, EightThreadsLaunchAtOnceFromTheFirstCallOn) {
  wise({record(64, 2, {1024, 0}), record(32, 1, {4096, 0})});
  const Kernel kernel(file(), options());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      cl_int code = 0;
      const cl_command_queue own = api().clCreateCommandQueue(context->get(), device.device, 0, &code);
      const int n = t % 2 ? 1024 : 4096;
      const cl_mem memory = buffer(static_cast<std::size_t>(n));
      std::vector<int> values(static_cast<std::size_t>(n));
      for (int i = 0; i < 20; ++i) kernel(own, n, 0, memory);
      api().clEnqueueReadBuffer(own, memory, 1, 0, values.size() * sizeof(int), values.data(), 0, nullptr, nullptr);
      const int each = t % 2 ? 2064 : 1032;
      for (const int value : values) wrong += value != 20 * each;
      api().clReleaseMemObject(memory);
      api().clReleaseCommandQueue(own);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(Application, ADeviceIsPretended) {
  WisdomRecord other = record(64, 2);
  other.device = wisdom_device("NVIDIA H100 80GB HBM3", "cuda", {});
  wise({other});
  EXPECT_EQ(run(Kernel(file(), options()), 1024), std::pair(16, 16));
  ::setenv("ERGOTUNE_DEVICE_NAME", "NVIDIA H100 80GB HBM3", 1);
  EXPECT_EQ(run(Kernel(file(), options()), 1024), std::pair(2064, 2064));
  ::unsetenv("ERGOTUNE_DEVICE_NAME");
}

TEST_F(Application, MistakesAreReportedInWords) {
  const auto description_of = [](const auto& call) { return error_of<LaunchError>([&] { call(); }, "nothing"); };
  EXPECT_THAT(description_of([&] { Kernel("/nowhere/k.toml"); }), HasSubstr("/nowhere/k.toml: cannot be read"));
  const Kernel kernel(file(), options());
  const cl_mem memory = nullptr;
  EXPECT_THAT(description_of([&] { kernel(queue, 1024, memory); }), HasSubstr("3 arguments"));
  EXPECT_THAT(description_of([&] { kernel(queue, 1024L, 0, memory); }), HasSubstr("argument 1"));
  EXPECT_THAT(description_of([&] { kernel(nullptr, 1024, 0, memory); }), HasSubstr("command queue"));
  Options given = options();
  given.constants = "m=3";
  EXPECT_THAT(description_of([&] { Kernel(file(), given); }), HasSubstr("no constant \"m\""));
}

// The description in code, and the source's macros for a size that no argument says.
TEST_F(Application, AKernelIsDescribedInCode) {
  Builder builder = Builder::from_text(
      "twice", "opencl", "kernel void twice(global int* x) { x[get_global_id(0)] = N * 2 + sizeof(T); }\n");
  builder.constant("N", 64)
      .tune("block", {8, 16})
      .tune<std::string>("T", {"char", "double"})
      .restriction("N % block == 0");
  builder.buffer("x", "int32", "N", "write").global({"N"}).block({"block"});
  Options given = options();
  given.constants = "N=128";
  const Kernel kernel(builder, given);
  const cl_mem memory = buffer(128);
  kernel(queue, memory);
  int value = 0;
  api().clEnqueueReadBuffer(queue, memory, 1, 127 * sizeof(int), sizeof value, &value, 0, nullptr, nullptr);
  api().clReleaseMemObject(memory);
  EXPECT_EQ(value, 257);
}

// TOML's numbers, whatever the application's locale writes.
TEST(KernelBuilder, RealsStayWhatTheyAre) {
  Builder builder = Builder::from_text("f", "opencl", "kernel void f() {}");
  builder.tune("eps", {1e-7, 1e-8, 0.1, 2.0, 1.0 / 3, 1e20})
      .tune("x", {0.1f, 4.0f})
      .tune("n", {3})
      .global({"64"})
      .block({"n"});
  EXPECT_THAT(builder.text(),
              HasSubstr("eps = [1e-07, 1e-08, 0.1, 2.0, 0.3333333333333333, 1e+20]\nx = [0.1, 4.0]\nn = [3]\n"));
  const Problem problem = parse_problem(builder.text(), "/nowhere/p.toml");
  EXPECT_EQ(problem.parameters[0].values, (std::vector<Value>{1e-7, 1e-8, 0.1, 2.0, 1.0 / 3, 1e20}));
}

// An optional buffer, as drivers take it.
TEST_F(Application, ALaunchWithoutABufferIsNotCapturedButMade) {
  write_file(folder / "mark.toml",
             "name = \"mark\"\n[parameters]\nblock = [8]\n[kernel]\nfunction = \"mark\"\nsource.opencl = \"mark.cl\"\n"
             "arguments = [{ name = \"out\", type = \"int32\", count = 8, access = \"write\" }, { name = \"more\", "
             "type = \"int32\", count = 8 }]\n"
             "[kernel.launch]\nglobal = [\"8\"]\nblock = [\"block\"]\n");
  write_file(folder / "mark.cl",
             "kernel void mark(global int* out, global int* more) { out[get_global_id(0)] = more ? 1 : 2; }\n");
  const Kernel kernel = capturing();
  const cl_mem memory = buffer(8), none = nullptr;
  EXPECT_NO_THROW(kernel(queue, memory, none));
  int value = 0;
  api().clEnqueueReadBuffer(queue, memory, 1, 0, sizeof value, &value, 0, nullptr, nullptr);
  api().clReleaseMemObject(memory);
  EXPECT_EQ(value, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("\"more\""));
}

TEST_F(Application, ALaunchIsCapturedAsAProblemWithItsData) {
  {
    const Kernel kernel = capturing();
    EXPECT_EQ(run(kernel, 2048, 5), std::pair(21, 21));
    EXPECT_EQ(run(kernel, 2048, 5), std::pair(21, 21)) << "once for each size";
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("mark_2048x5"));
  const Problem captured = load_problem(folder / "captured" / "mark_2048x5" / "problem.toml");
  const Problem original = load_problem(file());
  EXPECT_EQ(captured.constants.at("n"), Value(2048));
  EXPECT_EQ(captured.constants.at("offset"), Value(5));
  EXPECT_EQ(captured.verification.kind, Verification::Kind::files);
  EXPECT_EQ(captured.parameters.size(), original.parameters.size());
  EXPECT_EQ(source_hash(captured, captured.kernel(), "opencl", captured.constants),
            source_hash(original, original.kernel(), "opencl", original.constants))
      << "what is tuned from it is wisdom for the application";
  const std::string after = *read_file(folder / "captured" / "mark_2048x5" / "out_after.npy");
  EXPECT_EQ(after.size() % 64, 0u);
  int value = 0;
  std::memcpy(&value, after.data() + after.size() - sizeof value, sizeof value);
  EXPECT_EQ(value, 21);
}

/// Kernels that run one after the other, as a queue reaches them, and the clock that is requested.
struct SwitchedQueue {
  ClockSwitch changes{1395, 0.02};
  double now = 100, requested = 1395;
  int requests = 0;
  /// Clock and time of each kernel. `known`: the times are expected.
  double run(const std::vector<std::pair<double, double>>& kernels, bool known = true) {
    for (const auto& [clock, seconds] : kernels) {
      if (changes.follows(clock, known ? seconds : 0, now))
        if (const auto wanted = changes.begin(clock, known ? seconds : 0, now)) requested = *wanted, ++requests;
      now += seconds;
    }
    return requested;
  }
};

// Each launch adds 1. The default does a thousand times the work; one configuration adds a million, one does not
// compile.
struct OnlineApplication : Application {
  cl_mem memory = nullptr;
  int launches = 0;
  void SetUp() override {
    Application::SetUp();
    if (IsSkipped()) return;
    write_file(folder / "count.toml", R"(
name = "count"
[constants]
n = 64
[parameters]
work = [10000, 9999, 10, 1, 2]
[kernel]
function = "count"
source = "count.cl"
arguments = [
  { name = "size", type = "int32", value = "n" },
  { name = "out", type = "int32", count = "n", access = "read_write" },
]
[kernel.launch]
global = ["n"]
block = [16]
)");
    write_file(folder / "count.cl", R"(
#if work == 2
  this does not compile;
#endif
kernel void count(int size, global int* out) {
  int i = get_global_id(0);
  volatile int loops = work;
  while (loops > 1) --loops;
  out[i] += work == 1 ? 1000000 : 1;
}
)");
    memory = buffer(64);
  }
  void TearDown() override {
    if (memory) api().clReleaseMemObject(memory);
    Application::TearDown();
  }
  Kernel open(double bound = 0.5) {
    Options given = options();
    given.online = bound;
    return Kernel((folder / "count.toml").string(), given);
  }
  nlohmann::json why(const Kernel& kernel) { return nlohmann::json::parse(kernel.why(queue, 64, memory)); }
  bool settled(const Kernel& kernel) {
    const auto answer = why(kernel);
    return answer.contains("online") && answer["online"]["settled"];
  }
  void launch(const Kernel& kernel) {
    for (int i = 0; i < 8; ++i, ++launches) kernel(queue, 64, memory);
    api().clFinish(queue);
  }
  int counted() {
    int value = 0;
    api().clEnqueueReadBuffer(queue, memory, 1, 0, sizeof value, &value, 0, nullptr, nullptr);
    return value;
  }
};

TEST_F(OnlineApplication, TriesConfigurationsInItsOwnLaunchesAndKeepsTheFastest) {
  std::string problem = *read_file(folder / "count.toml");  // 30 ms, more than a launch waits for a busy processor
  const std::string work = "10000, 9999";
  write_file(folder / "count.toml", problem.replace(problem.find(work), work.size(), "2000000, 1999999"));
  {
    const Kernel kernel = open();
    launch(kernel);
    EXPECT_TRUE(why(kernel)["is_default"]);
    while (!settled(kernel) && launches < 1'000'000) launch(kernel);
    const auto after = why(kernel);
    EXPECT_EQ(after["configuration"]["work"], 10) << after;
    EXPECT_FALSE(after["is_default"]);
    EXPECT_EQ(after["online"]["tried"], 4) << after;
    EXPECT_EQ(after["online"]["failed"], 2) << after;
    launch(kernel);
    EXPECT_EQ(counted(), launches) << "the wrong configuration ran on copies only";
  }
  const Kernel next = open();
  EXPECT_EQ(why(next)["configuration"]["work"], 10);
  EXPECT_EQ(why(next)["match"], "exact");
  launch(next);
  EXPECT_FALSE(why(next).contains("online")) << "nothing is left to try";
}

TEST_F(OnlineApplication, EndsWithoutATrialWhereOutputsCannotBeCompared) {
  std::string problem = *read_file(folder / "count.toml");
  const std::string count = "count = \"n\"";
  write_file(folder / "count.toml", problem.replace(problem.find(count), count.size(), "count = \"2 * n\""));
  const Kernel kernel = open();
  while (!settled(kernel) && launches < 1'000'000) launch(kernel);
  EXPECT_TRUE(why(kernel)["is_default"]);
  EXPECT_EQ(counted(), launches);
}

TEST_F(OnlineApplication, CanBeClosedAndReloadedAtAnyTime) {
  for (int launched = 0; launched < 200; launched += 23) {
    const Kernel kernel = open();
    for (int i = 0; i < launched; ++i) kernel(queue, 64, memory);
    kernel.reload();
    for (int i = 0; i < launched; ++i) kernel(queue, 64, memory);
    launches += 2 * launched;
  }
  EXPECT_EQ(counted(), launches);
}

TEST_F(OnlineApplication, ManyThreadsLaunchWhileItTries) {
  const Kernel kernel = open();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) kernel(queue, 64, memory);
    });
  threads.clear();
  EXPECT_EQ(counted(), 2000);
}

TEST_F(OnlineApplication, ABoundIsANumber) {
  EXPECT_THROW(open(-1), LaunchError);
  ::setenv("ERGOTUNE_ONLINE", "much", 1);
  EXPECT_THROW(open(0), LaunchError);
  ::unsetenv("ERGOTUNE_ONLINE");
}

TEST(ClockSwitch, GivesLongKernelsTheirClock) {
  SwitchedQueue queue;
  EXPECT_EQ(queue.run({{1395, 0.5}, {705, 0.5}}), 705);
  EXPECT_EQ(queue.run({{1395, 0.5}, {705, 0.5}, {1395, 0.5}}), 1395);
  EXPECT_EQ(queue.requests, 4);
}

TEST(ClockSwitch, LearnsHowLongKernelsRun) {
  SwitchedQueue queue;
  EXPECT_EQ(queue.run({{1395, 0.5}, {705, 0.5}}, false), 1395) << "not known yet";
  EXPECT_EQ(queue.run({{1395, 0.5}, {705, 0.5}}, false), 705);
  ClockSwitch misled(1395, 0.02);
  EXPECT_EQ(misled.begin(705, 0.5, 0), 705);
  EXPECT_EQ(misled.begin(1395, 0.5, 0.001), 1395);
  EXPECT_EQ(misled.begin(705, 0.5, 1), std::nullopt) << "it ran for a millisecond";
}

TEST(ClockSwitch, KeepsTheCommonClockForShortKernels) {
  SwitchedQueue queue;
  for (int i = 0; i < 1000; ++i) queue.run({{1395, 0.001}, {705, 0.002}, {900, 0.001}});
  EXPECT_EQ(queue.requests, 0);
}

TEST(ClockSwitch, DoesNotChangeForWhatEndsBeforeTheChange) {
  SwitchedQueue queue;
  queue.run({{1395, 0.001}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.run({{705, 0.5}, {1395, 0.001}}), 705);
  EXPECT_EQ(queue.requests, 1);
  for (int i = 0; i < 30; ++i) queue.run({{900, 0.001}, {1395, 0.001}});
  EXPECT_EQ(queue.requested, 1395) << "short kernels, for longer than a change takes";
}

TEST(ClockSwitch, RunsKernelsWithoutAClockAtTheCommonOne) {
  SwitchedQueue queue;
  EXPECT_EQ(queue.run({{705, 0.5}, {0, 0.5}}), 1395);
  EXPECT_EQ(queue.run({{705, 0.5}}), 705);
}

}  // namespace
}  // namespace ergotune::launcher
