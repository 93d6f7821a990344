// The runner on devices that run kernels for real: host functions, OpenCL (PoCL in CI), and CUDA where there is a GPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "measure/device_checksum.hpp"
#include "measure/runner.hpp"
#include "measure/timing/timing.hpp"
#include "measure/timing/workload.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

/// One statement per element i, in every language.
struct Body {
  const char* name;
  const char* arguments;  ///< "float* out, const float* in", in the language of C
  const char* statement;
};

std::string source(const Body& body, const std::string& backend) {
  std::string arguments = body.arguments;
  if (backend == "host")
    return fmt::format("void {}({}) {{ for (int i = 0; i < COUNT; ++i) {{ {} }} }}\n", body.name, arguments,
                       body.statement);
  if (backend == "cuda")
    return fmt::format("extern \"C\" __global__ void {}({}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {} }}\n",
                       body.name, arguments, body.statement);
  for (std::size_t at = 0; (at = arguments.find("float*", at)) != std::string::npos; at += 13)
    arguments.insert(at, "global ");
  return fmt::format("kernel void {}({}) {{ int i = get_global_id(0); {} }}\n", body.name, arguments, body.statement);
}

class RealDevice : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (environment_variable("ERGOTUNE_CUDA").find("/fakes/") != std::string::npos && GetParam() == "cuda")
      GTEST_SKIP() << "another test of this process has opened a driver that is none";
    for (const auto& info : list_devices())
      if (info.backend == GetParam()) device = open_device(info.id);
    if (!device) GTEST_SKIP() << "no device of kind " << GetParam();
    options.min_repeats = options.max_repeats = 2;
    options.warm_up = 0;
  }
  Kernel kernel(const Body& body) const {
    Kernel made;
    KernelSource text;
    text.language = GetParam() == "host" ? Language::c : GetParam() == "cuda" ? Language::cuda : Language::opencl;
    text.text = source(body, GetParam());
    made.sources.push_back(text);
    made.function = Template::parse(body.name);
    made.launch.global = {Expression::parse("COUNT")};
    made.launch.block = {Expression::parse("64")};
    return made;
  }
  static Argument buffer(const char* name, Access access) {
    Argument argument;
    argument.name = name;
    argument.count = Expression::parse("COUNT");
    argument.access = access;
    return argument;
  }
  /// Copies `in` to `out`, and does what else `statement` says.
  Problem copying(const char* statement) const {
    Problem problem;
    problem.constants["COUNT"] = 1024;
    problem.kernel() = kernel({"f", "float* out, float* in", statement});
    problem.kernel().arguments = {buffer("out", Access::write), buffer("in", Access::read)};
    return problem;
  }
  Measurement measure(Runner& runner, const Problem& problem) const {
    std::vector<Binary> binaries;
    const auto compiler = device->make_compiler();
    for (std::size_t k = 0; k < problem.kernels.size(); ++k)
      binaries.push_back(compiler->compile(runner.compile_job({}, k)));
    return runner.run({}, binaries);
  }
  Measurement measure(const Problem& problem) const {
    Runner runner(*device, problem, options);
    return measure(runner, problem);
  }
  std::unique_ptr<Device> device;
  MeasureOptions options;
};

TEST_P(RealDevice, AKernelThatStaysInsideIsRight) {
  const Measurement m = measure(copying("out[i] = in[i];"));
  EXPECT_TRUE(usable(m.status)) << m.message;
}

TEST_P(RealDevice, WritingPastTheEndIsAWrongResultWithTheArgumentsName) {
  const Measurement m = measure(copying("out[i] = in[i]; out[i + COUNT] = 1;"));
  EXPECT_EQ(m.status, Status::wrong_result);
  EXPECT_THAT(m.message, HasSubstr("argument \"out\" is written outside of its buffer, at element 1024 (it has 1024)"));
  EXPECT_FALSE(m.value("time"));
}

TEST_P(RealDevice, AnInputThatIsChangedIsAWrongResultWithTheArgumentsName) {
  const Measurement m = measure(copying("out[i] = in[i]; if (i == 700) in[i] += 1;"));
  EXPECT_EQ(m.status, Status::wrong_result);
  EXPECT_THAT(m.message, HasSubstr("\"in\""));
  EXPECT_THAT(m.message, HasSubstr("element 700"));
}

TEST_P(RealDevice, AChecksumDependsOnEveryByteAndItsPlace) {
  if (GetParam() == "host") GTEST_SKIP() << "the host compares its memory itself";
  DeviceChecksum checksum(*device);
  for (const std::size_t bytes : {1u, 7u, 8u, 1027u, 3u << 20}) {
    std::vector<std::byte> contents(bytes);
    for (std::size_t i = 0; i < bytes; ++i) contents[i] = static_cast<std::byte>(i * 37 + 1);
    const auto whole = device->allocate(bytes + 4096);
    const auto inside = device->view(*whole, 4096, bytes);
    const auto sum_of = [&] {
      device->write(*inside, contents);
      return checksum.of(*inside);
    };
    const auto first = sum_of();
    ASSERT_TRUE(first);
    EXPECT_EQ(sum_of(), first);
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      contents[at] ^= std::byte{1};
      EXPECT_NE(sum_of(), first) << at << " of " << bytes;
      contents[at] ^= std::byte{1};
    }
    if (bytes > 16) {
      std::swap_ranges(contents.begin(), contents.begin() + 8, contents.begin() + 8);
      EXPECT_NE(sum_of(), first) << "words in another order";
    }
  }
}

TEST_P(RealDevice, AfterAKernelThatWroteOutsideTheNextOneIsJudgedByItself) {
  Problem problem = copying("out[i] = in[i];\n#if BAD\n out[i + COUNT] = 1; in[i] = 0;\n#endif\n");
  Parameter bad = test::listed("BAD", {0, 1});
  problem.parameters = {bad};
  Runner runner(*device, problem, options);
  const auto compiler = device->make_compiler();
  const auto run = [&](int value) {
    const Configuration configuration{Value(value)};
    return runner.run(configuration, compiler->compile(runner.compile_job(configuration))).status;
  };
  EXPECT_EQ(run(1), Status::wrong_result) << "and its outputs are no reference";
  EXPECT_FALSE(runner.has_reference());
  EXPECT_TRUE(usable(run(0)));
  EXPECT_EQ(run(1), Status::wrong_result);
  EXPECT_TRUE(usable(run(0)));
}

TEST_P(RealDevice, AReferenceThatWritesOutsideIsTheUsersMistake) {
  Problem problem = copying("out[i] = in[i];");
  problem.verification.kind = Verification::Kind::kernel;
  problem.verification.reference =
      std::make_shared<Kernel>(kernel({"r", "float* out, float* in", "out[i] = in[i]; out[i + 8] = in[i];"}));
  EXPECT_THROW(Runner(*device, problem, options), UserError);
}

// tmp = 2 in, out = tmp + 1.
TEST_P(RealDevice, TwoKernelsMakeOneRoundThatIsVerifiedAndTimed) {
  Problem problem = copying("");
  problem.kernels = {kernel({"twice", "float* tmp, const float* in", "tmp[i] = 2 * in[i];"}),
                     kernel({"more", "float* out, const float* tmp", "out[i] = tmp[i] + 1;"})};
  problem.kernels[0].arguments = {buffer("tmp", Access::write), buffer("in", Access::read)};
  problem.kernels[1].arguments = {buffer("out", Access::write), buffer("tmp", Access::read)};
  for (Kernel& kernel : problem.kernels)
    for (Argument& argument : kernel.arguments) argument.fill = {.kind = Fill::Kind::range, .start = 5};
  Runner runner(*device, problem, options);
  std::vector<std::string> seen;
  runner.set_verifier([&](const std::vector<OutputView>& outputs, std::string& message, double&) {
    for (const auto& output : outputs) {
      seen.push_back(output.argument->name);
      const auto* values = reinterpret_cast<const float*>(output.actual.data());
      const float wanted = output.argument->name == "tmp" ? 2 * (5 + 10) : 2 * (5 + 10) + 1;
      if (values[10] != wanted) message += output.argument->name + " is wrong";
    }
    return message.empty();
  });
  const Measurement m = measure(runner, problem);
  EXPECT_TRUE(usable(m.status)) << m.message;
  EXPECT_THAT(seen, ::testing::ElementsAre("tmp", "out"));
  EXPECT_GT(m.value("time").value_or(0), 0);
  const Binary one;
  EXPECT_THAT(runner.run({}, one).message, HasSubstr("2 kernels, but 1 binaries"));
  problem.kernels[1].arguments[1].type = ElementType::int32;
  EXPECT_THROW(Runner(*device, problem, options), UserError);
}

// The same reference with its arguments in another order: random inputs must be the same ones.
TEST_P(RealDevice, AReferencesArgumentsMeetTheProblemsByName) {
  Problem problem = copying("out[i] = in[i];");
  problem.verification.kind = Verification::Kind::kernel;
  auto reference = std::make_shared<Kernel>(kernel({"r", "const float* in, float* out", "out[i] = in[i];"}));
  reference->arguments = {buffer("in", Access::read), buffer("out", Access::write)};
  problem.verification.reference = reference;
  const Measurement m = measure(problem);
  EXPECT_TRUE(usable(m.status)) << m.message;
}

TEST_P(RealDevice, QueuesOfARoundRunBetweenItsMarkers) {
  const Problem problem = copying("");
  const Runner runner(*device, problem, options);
  CompileJob job = runner.compile_job({});
  job.source = source({"f", "float* out, float* in", "for (int k = 0; k < 2000; ++k) out[i] = out[i] * 0.5f + in[i];"},
                      GetParam());
  const auto compiler = device->make_compiler();
  const Binary binary = compiler->compile(job);
  std::vector<std::unique_ptr<Buffer>> memory;
  std::vector<std::unique_ptr<LoadedKernel>> loaded;
  std::vector<LoadedKernel*> kernels;
  for (int k = 0; k < 3; ++k) {
    std::vector<KernelArgument> arguments(2);
    for (auto& argument : arguments) {
      memory.push_back(device->allocate(1024 * sizeof(float)));
      const std::vector<float> ones(1024, 1.0f);
      device->write(*memory.back(), std::as_bytes(std::span(ones)));
      argument.buffer = memory.back().get();
    }
    loaded.push_back(device->load(binary));
    loaded.back()->bind({{16, 1, 1}, {64, 1, 1}, 0}, arguments);
    kernels.push_back(loaded.back().get());
  }
  KernelWorkload beside(*device, kernels, {{.kernel = 0}, {.kernel = 1, .queue = 1}, {.kernel = 2, .queue = 2}});
  Timer timer(*device, options);
  for (int i = 0; i < 3; ++i) EXPECT_GT(timer.once(beside), 0);
  std::vector<float> out(1024);
  for (int k = 0; k < 3; ++k) {
    device->read(*memory[static_cast<std::size_t>(2 * k)], std::as_writable_bytes(std::span(out)));
    EXPECT_FLOAT_EQ(out[1023], 2.0f) << "kernel " << k;
  }
}

/// Of NVIDIA's; its driver is not asked, which would be opened before the one that other tests pretend.
std::vector<std::string> with_gpus(std::vector<std::string> backends) {
  if (std::filesystem::exists("/dev/nvidiactl")) backends.emplace_back("cuda");
  return backends;
}

INSTANTIATE_TEST_SUITE_P(Backends, RealDevice, ::testing::ValuesIn(with_gpus({"host", "opencl"})),
                         [](const auto& info) { return info.param; });

/// A GPU: its multiprocessors have numbers that a kernel can read.
class RealDeviceParts : public RealDevice {
 protected:
  void SetUp() override {
    RealDevice::SetUp();
    if (!device) return;
    CompileJob job;
    job.language = Language::cuda;
    job.function = "where";
    job.source =
        "extern \"C\" __global__ void where(int* out) {\n"
        "  unsigned number; asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(number));\n"
        "  const long long begin = clock64(); while (clock64() - begin < 100000) {}\n"
        "  if (threadIdx.x == 0) out[blockIdx.x] = (int)number; }\n";
    const Binary binary = device->make_compiler()->compile(job);
    for (auto& memory : out) {
      memory = device->allocate(kBlocks * sizeof(int));
      KernelArgument argument;
      argument.buffer = memory.get();
      kernels.push_back(device->load(binary));
      kernels.back()->bind({{kBlocks, 1, 1}, {512, 1, 1}, 0}, {argument});
    }
  }
  std::set<int> multiprocessors(std::size_t of) {
    std::vector<int> numbers(kBlocks);
    device->read(*out[of], std::as_writable_bytes(std::span(numbers)));
    return {numbers.begin(), numbers.end()};
  }
  static constexpr std::uint32_t kBlocks = 4000;
  std::unique_ptr<Buffer> out[2];
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
};

TEST_P(RealDeviceParts, KernelsStayOnTheMultiprocessorsOfTheirQueue) {
  const auto& properties = device->info().properties;
  const auto total = static_cast<std::uint32_t>(properties.at("device.multiprocessors").as_integer());
  const auto unit = static_cast<std::uint32_t>(properties.at("device.multiprocessor_unit").as_integer());
  if (unit == 0 || unit >= total) GTEST_SKIP() << "this GPU, or its driver, is not taken apart";
  const std::uint32_t first = total / 3 / unit * unit;
  const QueueOptions one{.multiprocessors = first},
      other{.multiprocessors = total - first, .first_multiprocessor = first};
  KernelWorkload beside(*device, {kernels[0].get(), kernels[1].get()},
                        {{.kernel = 0, .queue = 1}, {.kernel = 1, .queue = 2}}, {one, other});
  fmt::print("{} multiprocessors in multiples of {}\n", total, unit);
  for (const bool graph : {false, true}) {  // the second round may be a graph
    for (const auto& memory : out) device->fill(*memory, 0);
    beside.launch(graph ? 2 : 1);
    device->synchronise();
    const std::set<int> a = multiprocessors(0), b = multiprocessors(1);
    fmt::print("{}: {} and {} multiprocessors\n", graph ? "again" : "queued", a.size(), b.size());
    EXPECT_EQ(a.size(), first);
    EXPECT_EQ(b.size(), total - first);
    for (const int number : a) EXPECT_FALSE(b.contains(number)) << number;
  }
  // Launches of one kernel, back to back, are no graph of the whole device either.
  const auto queue = device->make_queue(one);
  device->launch(*kernels[0], 300, queue.get());
  device->synchronise();
  EXPECT_EQ(multiprocessors(0).size(), first);
}

INSTANTIATE_TEST_SUITE_P(Backends, RealDeviceParts, ::testing::ValuesIn(with_gpus({})),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealDeviceParts);  // where there is no GPU

}  // namespace
}  // namespace ergotune
