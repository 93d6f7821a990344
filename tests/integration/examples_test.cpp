// Every example, for real: on OpenCL and the host its configurations run and are verified; for CUDA they
// compile, and the same sources as HIP.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "base/files.hpp"
#include "device/code_object.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "device/fortran.hpp"
#include "device/hip/hip_api.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "kernel/configure.hpp"
#include "kernel/round.hpp"
#include "measure/runner.hpp"

using namespace ergotune;

namespace {

const std::filesystem::path kExamples = std::filesystem::path(ERGOTUNE_SOURCE_DIR) / "examples";

ProblemFile load(const std::string& file) { return load_problem(kExamples / file); }

/// Random configurations and, where it is valid, the default.
std::vector<Configuration> some_configurations(const Problem& problem, const Constants& constants, std::size_t count) {
  const SearchSpace space = problem.build_space(constants);
  EXPECT_GE(space.size(), count) << space.why_empty();
  Random random(20261120);
  std::vector<Configuration> chosen;
  for (const auto index : space.sample_distinct(count, random)) chosen.push_back(space.configuration(index));
  return chosen;
}

std::string description(const Problem& problem, const Configuration& configuration) {
  return describe(problem.parameters, configuration);
}

/// "gemm/gemm.toml" -> "gemm": the test's name.
std::string name_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

/// A problem file, where it runs, and how many of its configurations do here (0: it only compiles).
struct Example {
  const char* file;
  const char* backend;
  std::size_t runs;
  std::size_t compiles = 0;  ///< with NVRTC
};

constexpr Example kAll[] = {
    {"gemm/gemm.toml", "opencl", 2, 2},
    {"rgb2gray/rgb2gray.toml", "opencl", 1, 1},
    {"raycasting/raycasting.toml", "opencl", 1, 1},
    {"vector_add/vector_add.toml", "opencl", 2, 1},
    {"vector_add/vector_add_c.toml", "host", 2},
    {"vector_add/vector_add_fortran.toml", "host", 2},
    // the gallery: few configurations of many kernels
    {"convolution/convolution.toml", "opencl", 1, 1},
    {"correlator/correlator.toml", "opencl", 1, 1},
    {"dedispersion/dedispersion.toml", "opencl", 1, 1},
    {"dedispersion/dedispersion_going_green.toml", "opencl", 1, 1},
    {"fourier_dedispersion/fourier_dedispersion.toml", "opencl", 1, 1},
    {"gemm/gemm_going_green.toml", "opencl", 1, 1},
    {"gemm/gemm_hub.toml", "opencl", 0, 1},
    {"gemv/gemv.toml", "opencl", 1, 1},
    {"idg/degridder.toml", "opencl", 1, 1},
    {"idg/gridder.toml", "opencl", 1, 1},
    {"hotspot/hotspot.toml", "opencl", 1, 1},
    {"application/heat.toml", "opencl", 1, 0},
    {"application/heat_cuda.toml", "cuda", 0, 1},
    {"jetson/bandpass.toml", "opencl", 1, 1},
    {"jetson/distance_map.toml", "opencl", 1, 1},
    {"jetson/matmul.toml", "opencl", 1, 1},
    {"layer_norm/layer_norm.toml", "opencl", 1, 1},
    {"reduction/reduction.toml", "opencl", 1, 1},
    {"scan/scan.toml", "opencl", 1, 1},
    {"sgemm/sgemm.toml", "opencl", 1, 1},
    {"softmax/softmax.toml", "opencl", 1, 1},
    {"spmv/spmv.toml", "opencl", 1, 1},
    {"transpose/transpose.toml", "opencl", 1, 1},
    {"attention/attention.toml", "cuda", 0, 1},
    {"attention/hopper_attention.toml", "cuda", 0, 1},
    {"sgemm/hopper_sgemm.toml", "cuda", 0, 1},
    {"tensor_correlator/tensor_correlator.toml", "cuda", 0, 1},
    {"tensor_correlator/tensor_correlator_8bit.toml", "cuda", 0, 1},
    {"tensor_dgemm/tensor_dgemm.toml", "cuda", 0, 1},
    {"tensor_gemm/hopper_gemm.toml", "cuda", 0, 1},
    {"tensor_gemm/hopper_gemm_fp8.toml", "cuda", 0, 1},
    {"tensor_gemm/skinny_gemm.toml", "cuda", 0, 1},
    {"tensor_gemm/tensor_gemm.toml", "cuda", 0, 1},
};

std::vector<Example> examples_that(bool (*wanted)(const Example&)) {
  std::vector<Example> chosen;
  std::copy_if(std::begin(kAll), std::end(kAll), std::back_inserter(chosen), wanted);
  return chosen;
}

class RunningExample : public testing::TestWithParam<Example> {};

TEST_P(RunningExample, RandomConfigurationsGiveVerifiedResults) {
  const auto [file, backend, runs, compiles] = GetParam();
  const ProblemFile problem = load(file);
  if (problem.kernel().source_for(Language::fortran)) SKIP_WITHOUT_FORTRAN();
  std::unique_ptr<Device> device;
  for (const auto& info : list_devices())
    if (info.backend == backend) device = open_device(info.id);
  if (!device) GTEST_SKIP() << "no device of kind " << backend;
  Constants constants = problem.constants_for(device->info().name, device->info().properties);
  MeasureOptions options = MeasureOptions::from(problem.run);
  options.min_repeats = 1;
  options.max_repeats = 1;
  options.warm_up = 0;
  Runner runner(*device, problem, options);
  const auto compiler = device->make_compiler();
  for (const auto& configuration : some_configurations(problem, constants, runs)) {
    const auto binary = compiler->compile(runner.compile_job(configuration));
    const Measurement measurement = runner.run(configuration, binary);
    EXPECT_TRUE(usable(measurement.status))
        << description(problem, configuration) << ": " << to_string(measurement.status) << " " << measurement.message;
  }
}

std::string test_name(const testing::TestParamInfo<Example>& example) { return name_of(example.param.file); }

INSTANTIATE_TEST_SUITE_P(Examples, RunningExample,
                         testing::ValuesIn(examples_that([](const Example& e) { return e.runs > 0; })), test_name);

class CudaExample : public testing::TestWithParam<Example> {};

TEST_P(CudaExample, RandomConfigurationsAndTheReferenceCompile) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  const Problem problem = load(GetParam().file);
  DeviceInfo h100;
  h100.backend = "cuda";
  h100.name = "NVIDIA H100 80GB HBM3";
  h100.properties = {{"device.name", h100.name},
                     {"device.max_threads_per_block", 1024},
                     {"device.shared_memory_per_block", 49152},
                     {"device.multiprocessors", 132}};
  const Constants constants = problem.constants_for(h100.name, h100.properties);
  const auto compiler = open_compiler("cuda:sm_90");
  const auto compile = [&](const Kernel& kernel, const Configuration& configuration) {
    EXPECT_NO_THROW({
      const auto binary = compiler->compile(make_compile_job(problem, kernel, h100, constants, configuration));
      EXPECT_FALSE(binary.bytes.empty());
    }) << description(problem, configuration);
  };
  const auto configurations = some_configurations(problem, constants, GetParam().compiles);
  for (const auto& configuration : configurations) compile(problem.kernel(), configuration);
  if (problem.verification.kind == Verification::Kind::kernel)
    compile(*problem.verification.reference, configurations[0]);
}

INSTANTIATE_TEST_SUITE_P(Examples, CudaExample,
                         testing::ValuesIn(examples_that([](const Example& e) { return e.compiles > 0; })), test_name);

/// Every problem of examples/ with a source in CUDA C++, without those that are written for NVIDIA's tensor cores.
std::vector<std::string> portable_examples() {
  constexpr std::array nvidias = {
      "attention/",  "energy_kernels/tensor.toml", "sgemm/hopper_sgemm.toml", "tensor_correlator/", "tensor_dgemm/",
      "tensor_gemm/"};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kExamples)) {
    const std::string file = std::filesystem::relative(entry.path(), kExamples).string();
    if (entry.path().extension() != ".toml") continue;
    if (std::ranges::any_of(nvidias, [&](const char* start) { return file.starts_with(start); })) continue;
    const std::string text = *read_file(entry.path());
    if (text.find("cuda = \"") != std::string::npos) files.push_back(file);
  }
  std::ranges::sort(files);
  return files;
}

class HipExample : public testing::TestWithParam<std::string> {};

TEST_P(HipExample, ItsCudaSourceCompilesAsHipAndItsResourcesAreKnown) {
  if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
  const Problem problem = load(GetParam());
  // CDNA 2 and RDNA 2, the newest of their lines that Debian's hiprtc knows; CDNA 3 with a newer one.
  std::vector<std::string> targets = {"gfx90a", "gfx1030"};
#ifdef ERGOTUNE_NIGHTLY
  const auto known = hiprtc::architectures();
  if (known && std::ranges::find(*known, "gfx942") != known->end()) targets.emplace_back("gfx942");
#else
  targets.erase(targets.begin() + static_cast<std::ptrdiff_t>(GetParam().size() % 2));  // one of them
#endif
  for (const std::string& target : targets) {
    DeviceInfo gpu;
    gpu.backend = "hip";
    gpu.name = "AMD " + target;
    const int lanes = target.starts_with("gfx9") ? 64 : 32;
    gpu.properties = {{"device.name", gpu.name},
                      {"device.max_threads_per_block", 1024},
                      {"device.max_threads_per_multiprocessor", 2048},
                      {"device.shared_memory_per_block", 65536},
                      {"device.shared_memory_per_multiprocessor", 65536},
                      {"device.registers_per_block", 65536},
                      {"device.registers_per_multiprocessor", 131072},
                      {"device.multiprocessors", 104},
                      {"device.multiprocessor_unit", 1},
                      {"device.warp_size", lanes}};
    const Constants constants = problem.constants_for(gpu.name, gpu.properties);
    const auto compiler = open_compiler("hip:" + target);
    const Configuration configuration = some_configurations(problem, constants, 1).at(0);
    for (const Kernel& kernel : problem.kernels) {
      const ConfigurationScope names(problem.parameters, configuration, constants, kernel.name);
      Launch one_block;  // of a grid that may depend on loops of the round
      one_block.block = kernel.launch.block;
      const LaunchGeometry geometry = make_geometry(one_block, names.scope());
      Binary binary;
      ASSERT_NO_THROW(binary = compiler->compile(make_compile_job(problem, kernel, gpu, constants, configuration)))
          << target << " " << description(problem, configuration);
      const auto code = hip::read_code_object(binary.bytes);
      ASSERT_TRUE(code);
      const auto found = std::ranges::find_if(code->kernels, [&](const auto& k) { return k.name == binary.entry; });
      ASSERT_NE(found, code->kernels.end()) << binary.entry;
      EXPECT_NE(code->target.find(target), std::string::npos) << code->target;
      EXPECT_EQ(found->wavefront, lanes);
      EXPECT_GT(found->vector_registers, 0);
      EXPECT_LE(found->vector_registers, 512);
      EXPECT_GT(found->scalar_registers, 0);
      EXPECT_LE(found->group_bytes, 65536);
      EXPECT_GE(found->max_threads_per_block,
                static_cast<int>(geometry.block[0] * geometry.block[1] * geometry.block[2]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, HipExample, testing::ValuesIn(portable_examples()),
                         [](const testing::TestParamInfo<std::string>& file) { return name_of(file.param); });

}  // namespace
