// What was published about the gallery's kernels: how many configurations their spaces hold, and which.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/cuda/nvrtc_api.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/configure.hpp"
#include "measure/runner.hpp"
#include "problem/tables/device_profile.hpp"

using namespace ergotune;

namespace {

const std::filesystem::path kExamples = std::filesystem::path(ERGOTUNE_SOURCE_DIR) / "examples";

struct PublishedSpace {
  const char* file;
  const char* profile;
  std::uint64_t configurations;
};

class PublishedSpaces : public testing::TestWithParam<PublishedSpace> {};

TEST_P(PublishedSpaces, HoldAsManyConfigurationsAsWasPublished) {
  const auto [file, name, configurations] = GetParam();
  const Problem problem = load_problem(kExamples / file);
  const DeviceProfile profile = load_device_profile(name);
  EXPECT_EQ(problem.build_space(problem.constants_for(profile.name, profile.properties)).size(), configurations);
}

// Going Green counts 17,472 configurations of CLBlast's GEMM; the benchmark hub counts the others on an A100.
INSTANTIATE_TEST_SUITE_P(Gallery, PublishedSpaces,
                         testing::Values(PublishedSpace{"gemm/gemm_going_green.toml", "a100", 17472},
                                         PublishedSpace{"gemm/gemm_hub.toml", "a100", 116928},
                                         PublishedSpace{"convolution/convolution.toml", "a100", 4362},
                                         PublishedSpace{"hotspot/hotspot.toml", "a100", 82984},
                                         PublishedSpace{"dedispersion/dedispersion.toml", "a100", 11130}),
                         [](const auto& space) { return std::filesystem::path(space.param.file).stem().string(); });

/// Anzt et al. (2015), Table II: dim_m, dim_n, blk_m, blk_n, blk_k, blk_m_a, blk_n_a, blk_m_b, blk_n_b.
constexpr int kTableTwo[14][9] = {
    {16, 16, 64, 96, 16, 64, 4, 16, 16},  {32, 16, 128, 128, 16, 32, 16, 8, 64}, {16, 16, 128, 128, 8, 64, 4, 8, 32},
    {16, 16, 128, 128, 8, 32, 8, 4, 64},  {16, 16, 64, 256, 8, 32, 8, 4, 64},    {16, 16, 128, 128, 2, 128, 2, 2, 128},
    {16, 16, 64, 128, 4, 64, 4, 2, 128},  {48, 16, 48, 96, 16, 48, 16, 8, 96},   {64, 16, 64, 64, 16, 64, 16, 16, 64},
    {16, 48, 96, 48, 16, 48, 16, 16, 48}, {64, 16, 64, 64, 48, 64, 16, 16, 64},  {32, 16, 64, 64, 24, 64, 8, 8, 64},
    {16, 16, 64, 80, 16, 32, 8, 16, 16},  {16, 16, 80, 80, 16, 16, 16, 16, 16},
};

/// The stencil's configuration from a row of Table II; the paper has no vectors, textures, A and B read together.
Configuration from_table_two(const Problem& problem, const int (&row)[9], bool simd = false) {
  Configuration configuration = default_values(problem);
  for (int i = 0; i < 9; ++i) configuration[static_cast<std::size_t>(i)] = Value(row[i]);
  configuration[9] = Value(simd ? 1 : 0);
  return configuration;
}

TEST(BeastStencil, HoldsAllKernelsOfTableTwoAndTheyCompile) {
  const Problem problem = load_problem(kExamples / "dgemm_beast/dgemm.toml");
  const DeviceProfile k20x = load_device_profile("k20x");
  const SearchSpace space = problem.build_space(problem.constants_for(k20x.name, k20x.properties));
  DeviceInfo h100;
  h100.backend = "cuda";
  h100.name = "NVIDIA H100 80GB HBM3";
  const Constants constants = problem.constants_for(h100.name, {});
  const auto compiler = nvrtc::api().usable() ? open_compiler("cuda:sm_90") : nullptr;
  for (const auto& row : kTableTwo) {
    const Configuration configuration = from_table_two(problem, row);
    EXPECT_TRUE(space.index_of(configuration)) << describe(problem.parameters, configuration);
    if (!compiler) continue;
    EXPECT_NO_THROW(compiler->compile(make_compile_job(problem, problem.kernel(), h100, constants, configuration)))
        << describe(problem.parameters, configuration);
  }
}

TEST(BeastStencil, IsRightForEachTransposition) {
  std::unique_ptr<Device> device;
  for (const auto& info : list_devices())
    if (info.backend == "opencl") device = open_device(info.id);
  if (!device) GTEST_SKIP() << "no OpenCL device";
  for (int transposed = 0; transposed < 4; ++transposed) {
    Problem problem = load_problem(kExamples / "dgemm_beast/dgemm.toml");
    problem.constants["TRANS_A"] = Value(transposed % 2);
    problem.constants["TRANS_B"] = Value(transposed / 2);
    problem.constants["SIZE_K"] = Value(40);  // not a multiple of the stripe
    MeasureOptions options;
    options.min_repeats = options.max_repeats = 1;
    options.warm_up = 0;
    Runner runner(*device, problem, options);
    // pairs of numbers fit the stored direction of both matrices
    const int with_pairs[9] = {16, 16, 32, 32, 32, 16, 16, 16, 16};
    const Configuration configuration = from_table_two(problem, with_pairs, transposed != 0);
    const Measurement result =
        runner.run(configuration, device->make_compiler()->compile(runner.compile_job(configuration)));
    EXPECT_TRUE(usable(result.status)) << "transposed " << transposed << ": " << result.message;
  }
}

TEST(BeastStencil, IsRightForComplexNumbersInEachTransposition) {
  std::unique_ptr<Device> device;
  for (const auto& info : list_devices())
    if (info.backend == "opencl") device = open_device(info.id);
  const auto nvrtc = nvrtc::api().usable() ? open_compiler("cuda:sm_90") : nullptr;
  if (!device && !nvrtc) GTEST_SKIP() << "neither an OpenCL device nor NVRTC";
  const int shape[9] = {16, 16, 32, 32, 16, 16, 16, 16, 16};
  for (int transposed = 0; transposed < 9; ++transposed) {
    Problem problem = load_problem(kExamples / "dgemm_beast/zgemm.toml");
    problem.constants["TRANS_A"] = Value(transposed % 3);
    problem.constants["TRANS_B"] = Value(transposed / 3);
    problem.constants["SIZE_K"] = Value(40);  // not a multiple of the stripe
    const Configuration configuration = from_table_two(problem, shape);
    if (device) {
      MeasureOptions options;
      options.min_repeats = options.max_repeats = 1;
      options.warm_up = 0;
      Runner runner(*device, problem, options);
      const Measurement result =
          runner.run(configuration, device->make_compiler()->compile(runner.compile_job(configuration)));
      EXPECT_TRUE(usable(result.status)) << "transposed " << transposed << ": " << result.message;
    }
    if (!nvrtc) continue;
    DeviceInfo h100;
    h100.backend = "cuda";
    h100.name = "NVIDIA H100 80GB HBM3";
    const Constants constants = problem.constants_for(h100.name, {});
    EXPECT_NO_THROW(nvrtc->compile(make_compile_job(problem, problem.kernel(), h100, constants, configuration)));
  }
}

}  // namespace
