#include "evaluate/recorded/simulated.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

/// The only code there is, at a clock: block, threads (48 multiprocessors), MHz.
Configuration at_clock(int clock) { return {Value(256), Value(48 * 96 * 256), Value(clock)}; }

double value(const Measurement& m, const std::string& name) { return m.value(name).value(); }

TEST(SimulatedDevice, FullLoadDrawsTheRecordedPowerOfTheRtxA4000) {
  // The recording behind the profile (Kernel Tuner project): 79.9 W at 1335 MHz, 133.8 W at 1710 MHz.
  const DeviceProfile profile = load_device_profile("rtx_a4000");
  Problem problem = full_load_problem();
  resolve_execution_parameters(problem, profile);
  const SimulatedDevice device(profile, problem, problem.parameters);
  EXPECT_NEAR(value(device.truth(at_clock(1335)), "power"), 79.9, 4);
  EXPECT_NEAR(value(device.truth(at_clock(1710)), "power"), 133.8, 7);
  // Compute-bound: time goes with 1/f.
  EXPECT_NEAR(value(device.truth(at_clock(600)), "time") / value(device.truth(at_clock(1200)), "time"), 2, 0.01);
}

TEST(SimulatedDevice, ThrottlesAtItsPowerLimitAndSaysSo) {
  const DeviceProfile profile = load_device_profile("rtx_a4000");
  Problem problem = full_load_problem();
  resolve_execution_parameters(problem, profile);
  const SimulatedDevice device(profile, problem, problem.parameters);
  const Measurement top = device.truth(at_clock(2100));
  EXPECT_NEAR(value(top, "power"), 140, 0.1);
  EXPECT_LT(value(top, "core_clock"), 1900e6);
  ASSERT_EQ(top.warnings.size(), 1u);
  EXPECT_NE(top.warnings[0].find("power cap"), std::string::npos);
  EXPECT_TRUE(device.truth(at_clock(1500)).warnings.empty());
}

TEST(SimulatedDevice, WithoutARequestedClockAPowerLimitHoldsNoneDown) {
  const DeviceProfile profile = load_device_profile("h100");
  Problem problem = full_load_problem();
  problem.execution_parameters.clear();
  const SearchSpace space = problem.build_space(problem.constants_for(profile.name, profile.properties));
  const SimulatedDevice device(profile, problem, space.parameters());
  const Measurement m = device.truth(space.configuration(0));
  EXPECT_LT(value(m, "core_clock"), 1980e6);
  EXPECT_TRUE(m.warnings.empty()) << m.warnings[0];
}

TEST(SimulatedDevice, BlockSizeAndClockInteractThroughOccupancy) {
  // A kernel that streams: with few warps a low clock cannot keep the memory busy, with many it can.
  const DeviceProfile profile = load_device_profile("a100");
  Problem problem;
  problem.simulation["flops"] = Expression::parse("1e9");
  problem.simulation["bytes"] = Expression::parse("1e9");
  problem.simulation["efficiency"] = Expression::parse("1");
  problem.simulation["registers"] = Expression::parse("65536 / (threads * 2)");  // two blocks fit
  problem.simulation["blocks"] = Expression::parse("108 * 2 * 16");
  const std::vector<Parameter> parameters = {
      test::listed("block_size_x", {32, 1024}),
      test::listed("core_clock_mhz", {600, 1410}, ParameterKind::core_clock_mhz)};
  const SimulatedDevice device(profile, problem, parameters);
  const auto seconds = [&](int block, int clock) { return value(device.truth({Value(block), Value(clock)}), "time"); };
  const double slowdown_few = seconds(32, 600) / seconds(32, 1410);
  const double slowdown_many = seconds(1024, 600) / seconds(1024, 1410);
  EXPECT_GT(slowdown_few, 1.3);
  EXPECT_LT(slowdown_many, 1.2);
}

TEST(SimulatedDevice, WhatDoesNotFitIsAFailureNotAnException) {
  const DeviceProfile profile = load_device_profile("a100");
  Problem problem;
  const SimulatedDevice device(profile, problem, {test::listed("block_size_x", {256, 2048})});
  EXPECT_TRUE(device.truth({Value(256)}).ok());
  EXPECT_EQ(device.truth({Value(2048)}).status, Status::launch_error);
}

// CUDA C++ programming guide, maximum amount of shared memory per thread block: 227 KiB (9.0), 163 KiB (8.0), 48 KiB
// (3.5)
TEST(SimulatedDevice, BlocksMayHaveTheSharedMemoryThatTheirGpuGrants) {
  const std::map<std::string, std::int64_t> kibibytes{{"h100", 227}, {"a100", 163}, {"k20x", 48}};
  for (const auto& [name, most] : kibibytes) {
    Problem problem;
    problem.simulation["shared_bytes"] = Expression::parse("BYTES");
    const SimulatedDevice device(load_device_profile(name), problem,
                                 {test::listed("BYTES", {most * 1024, most * 1024 + 16})});
    EXPECT_EQ(device.truth({Value(most * 1024)}).status, Status::ok) << name;
    EXPECT_EQ(device.truth({Value(most * 1024 + 16)}).status, Status::launch_error) << name;
  }
}

TEST(SimulatedDevice, RegistersAreGivenOutInUnits) {
  // 768 threads x 84 registers are fewer than the 65,536 of a K20X; in units of 256 a warp they are more.
  Problem problem;
  problem.simulation["registers"] = Expression::parse("REGISTERS");
  const SimulatedDevice device(load_device_profile("k20x"), problem,
                               {test::listed("block_size_x", {768}), test::listed("REGISTERS", {80, 84})});
  EXPECT_EQ(device.truth({Value(768), Value(80)}).status, Status::ok);
  EXPECT_EQ(device.truth({Value(768), Value(84)}).status, Status::launch_error);
}

TEST(SimulatedDevice, NoiseIsSeededAndScattersAroundTheTruth) {
  const DeviceProfile profile = load_device_profile("a100");
  Problem problem;
  const std::vector<Parameter> parameters = {test::listed("block_size_x", {64, 128, 256})};
  SimulationOptions options;
  const SimulatedDevice one(profile, problem, parameters, options), same(profile, problem, parameters, options);
  options.seed = 2;
  const SimulatedDevice other(profile, problem, parameters, options);
  const Configuration c = {Value(128)};
  EXPECT_EQ(value(one.measure(c), "energy"), value(same.measure(c), "energy"));
  EXPECT_NE(value(one.measure(c), "energy"), value(other.measure(c), "energy"));
  EXPECT_NE(value(one.measure(c, 1), "energy"), value(one.measure(c, 2), "energy"));
  double sum = 0;
  for (int i = 0; i < 400; ++i) sum += value(one.measure(c, i), "energy");
  EXPECT_NEAR(sum / 400 / value(one.truth(c), "energy"), 1, 0.003);
}

TEST(SimulatedDevice, EverythingItSaysIsSimulated) {
  const DeviceProfile profile = load_device_profile("h100");
  Problem problem;
  problem.parameters = {test::listed("block_size_x", {64, 128})};
  const SearchSpace space = problem.build_space(profile.properties);
  const auto evaluator = make_simulated(profile, problem, space);
  EXPECT_EQ(evaluator->provenance(), Provenance::simulated);
  EXPECT_NE(evaluator->description().find("simulated"), std::string::npos);
  EvaluationRequest request;
  request.configuration = space.configuration(0);
  evaluator->submit(request);
  const auto result = evaluator->wait(1);
  ASSERT_TRUE(result.has_value());
  for (const auto& [name, quantity] : result->measurement.quantities) {
    EXPECT_EQ(quantity.provenance, Provenance::simulated) << name;
  }
  EXPECT_FALSE(evaluator->wait(0).has_value());
}

TEST(SimulatedDevice, ListsTheProfilesClocksAndLimits) {
  const DeviceProfile profile = load_device_profile("h100");
  EXPECT_EQ(core_clocks(profile).size(), 110u);  // 345-1980 MHz in steps of 15, as the GPU lists them
  Problem problem;
  ExecutionParameterSpec clock;
  clock.kind = ParameterKind::core_clock_mhz;
  clock.choice = ExecutionParameterSpec::Choice::equidistant;
  clock.count = 7;
  ExecutionParameterSpec limit;
  limit.kind = ParameterKind::power_limit_w;
  limit.choice = ExecutionParameterSpec::Choice::equidistant;
  limit.count = 3;
  problem.execution_parameters = {clock, limit};
  resolve_execution_parameters(problem, profile);
  ASSERT_EQ(problem.parameters.size(), 2u);
  EXPECT_EQ(problem.parameters[0].values.size(), 7u);
  EXPECT_EQ(problem.parameters[0].values.back().as_real(), 1980);
  EXPECT_EQ(problem.parameters[1].values.front().as_real(), 200);
  EXPECT_EQ(problem.parameters[1].values.back().as_real(), 700);
}

TEST(SimulatedDevice, KernelsMayHaveMultiprocessorsForThemselves) {
  // Two kernels bound by arithmetic: on the whole device one takes t; on so many of n multiprocessors each takes n / of
  // them.
  const Problem problem = parse_problem(R"toml(
[kernels.a]
function = "a"
parameters = { B = [256] }
launch = { global = [16777216], block = ["B"] }
[kernels.b]
function = "b"
launch = { global = [16777216], block = [256] }
[simulation.a]
flops = 1e12
bytes = 0
efficiency = 0.5
[simulation.b]
flops = 1e12
bytes = 0
efficiency = 0.5
[workload]
parameters = { A = [0, 27, 54, 200] }
steps = [{ concurrent = ["a", "b"], multiprocessors = { a = "workload.A", b = "max(0, device.multiprocessors - workload.A) if workload.A else 0" } }]
)toml",
                                        "p.toml");
  const SimulatedDevice device(load_device_profile("a100"), problem, problem.parameters, {});
  const auto at = [&](int multiprocessors) { return device.truth({Value(256), Value(multiprocessors)}); };
  ASSERT_EQ(at(54).status, Status::ok) << at(54).message;
  EXPECT_NEAR(at(54).value("time.a").value() / at(0).value("time.a").value(), 1,
              0.05);  // halves, and whole ones in turns
  EXPECT_NEAR(at(54).value("time").value() / at(0).value("time").value(), 1, 0.05);
  EXPECT_NEAR(at(27).value("time").value() / at(54).value("time").value(), 2,
              0.1);  // a has a quarter, b ends long before
  EXPECT_NEAR(at(27).value("time.b").value() / at(54).value("time.b").value(), 54.0 / 81, 0.05);
  EXPECT_EQ(at(200).status, Status::launch_error);
}

TEST(SimulatedDevice, AnUnknownNameInTheTableIsTheUsersMistake) {
  Problem problem;
  problem.simulation["flop"] = Expression::parse("1");
  EXPECT_THAT(error_of([&] {
                SimulatedDevice(load_device_profile("a100"), problem, {test::listed("x", {1, 2})});
              }),
              testing::HasSubstr("flops"));
}

TEST(SimulatedDevice, TheDefaultLandscapeHasLocalOptima) {
  Problem problem;
  problem.parameters = {test::listed("block_size_x", {32, 64, 128, 256, 512}),
                        test::listed("tile", {1, 2, 3, 4, 5, 6, 7, 8}), test::listed("unroll", {1, 2, 4, 8, 16})};
  const DeviceProfile profile = load_device_profile("v100");
  const SearchSpace space = problem.build_space(profile.properties);
  const SimulatedDevice device(profile, problem, space.parameters());
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < space.size(); ++i)
    seconds.push_back(value(device.truth(space.configuration(i)), "time"));
  EXPECT_GT(*std::ranges::max_element(seconds), 1.3 * *std::ranges::min_element(seconds));
  int minima = 0;
  std::vector<ConfigurationIndex> neighbours;
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    space.neighbours(i, Neighbourhood::strictly_adjacent, neighbours);
    minima += std::ranges::all_of(neighbours, [&](auto n) { return seconds[n] >= seconds[i]; });
  }
  EXPECT_GE(minima, 2);
}

}  // namespace
}  // namespace ergotune
