// Blocks that fit on a multiprocessor, equation by equation, on devices of every unit; and what makes no
// sense.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brute_force.hpp"
#include "ergotune/base/error.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::listed;
using ::testing::HasSubstr;

/// So large that one thing at a time is short; what is given replaces or adds a property, a text of nothing
/// takes it away.
Constants device(const std::vector<std::pair<std::string, Value>>& changes = {}) {
  Constants result{{"device.max_blocks_per_multiprocessor", 1'000'000},
                   {"device.max_threads_per_multiprocessor", 32'000'000},
                   {"device.registers_per_multiprocessor", 65536},
                   {"device.shared_memory_per_multiprocessor", 49152},
                   {"device.warp_size", 32}};
  for (const auto& [name, value] : changes) {
    result.erase("device." + name);
    if (value != Value("")) result.emplace("device." + name, value);
  }
  return result;
}

std::int64_t blocks(const std::string& arguments, const Constants& constants = device()) {
  const Scope scope = [&](std::string_view name) -> const Value* {
    const auto found = constants.find(name);
    return found == constants.end() ? nullptr : &found->second;
  };
  return Expression::parse("occupancy(" + arguments + ")").evaluate(scope).as_integer();
}

TEST(OccupancyEquations, ThreadsComeInWarps) {
  for (const auto& [threads, fits] :
       {std::pair{1, 64}, {32, 64}, {33, 32}, {64, 32}, {65, 21}, {2048, 1}, {2049, 0}})
    EXPECT_EQ(blocks(std::to_string(threads) + ", 0, 0", device({{"max_threads_per_multiprocessor", 2048}})),
              fits)
        << threads;
  EXPECT_EQ(blocks("3, 0, 0", device({{"max_threads_per_multiprocessor", 10}, {"warp_size", 1}})), 3);
  EXPECT_EQ(blocks("32, 0, 0", device({{"max_blocks_per_multiprocessor", 7}})), 7);
  EXPECT_EQ(blocks("32, 0, 0", device({{"max_blocks_per_multiprocessor", 0}})), 0);
}

TEST(OccupancyEquations, SharedMemoryComesInUnitsOfTheDevice) {
  const std::pair<std::vector<std::pair<std::string, Value>>, std::int64_t> units[] = {
      {{}, 256},
      {{{"compute_capability", 79}}, 256},
      {{{"compute_capability", 80}}, 128},
      {{{"compute_capability", 90}}, 128},
      {{{"compute_capability", 90}, {"shared_allocation_unit", 512}}, 512},
      {{{"shared_allocation_unit", 1}}, 1},
      {{{"shared_allocation_unit", 0}}, 1},
      {{{"shared_allocation_unit", -5}}, 1},
      {{{"shared_allocation_unit", 3}}, 3}};
  for (const auto& [changes, unit] : units)
    for (const std::int64_t shared : {1, 3, 127, 128, 129, 256, 257, 49152, 49153})
      EXPECT_EQ(blocks(fmt::format("1, 0, {}", shared), device(changes)),
                49152 / ((shared + unit - 1) / unit * unit))
          << unit << " " << shared;
  EXPECT_EQ(blocks("1, 0, 0"), 1'000'000) << "none is needed";
}

TEST(OccupancyEquations, RegistersAreThoseOfAWarpInUnitsOfTheDevice) {
  const std::pair<std::vector<std::pair<std::string, Value>>, std::int64_t> units[] = {
      {{}, 256},
      {{{"register_allocation_unit", 512}}, 512},
      {{{"register_allocation_unit", 1}}, 1},
      {{{"register_allocation_unit", 0}}, 1},
      {{{"register_allocation_unit", -1}}, 1}};
  for (auto [changes, unit] : units)
    for (const std::int64_t warp : {32, 1}) {
      changes.emplace_back("warp_size", warp);
      for (const std::int64_t registers : {1, 3, 8, 9, 255})
        for (const std::int64_t threads : {1, 96})
          EXPECT_EQ(blocks(fmt::format("{}, {}, 0", threads, registers), device(changes)),
                    65536 / ((registers * warp + unit - 1) / unit * unit) / ((threads + warp - 1) / warp))
              << unit << " " << warp << " " << registers << " " << threads;
    }
  EXPECT_EQ(blocks("1, 9, 6000"), 8) << "the scarcest counts";
  EXPECT_EQ(blocks("1, 1000, 6000"), 2);
}

std::string refusal(const std::string& arguments, const Constants& constants = device()) {
  try {
    blocks(arguments, constants);
  } catch (const UserError& error) {
    return error.message();
  }
  return "none";
}

TEST(OccupancyEquations, WhatMakesNoSenseIsSaid) {
  constexpr const char* kMost = "1099511627776";  // 2^40
  for (const char* arguments : {"0, 0, 0", "-1, 0, 0", "1, -1, 0", "1, 0, -1", "1 + 1099511627776, 0, 0",
                                "1, 1 + 1099511627776, 0", "1, 0, 1 + 1099511627776"})
    EXPECT_THAT(refusal(arguments), HasSubstr("makes no sense")) << arguments;
  for (const auto& most :
       {fmt::format("{}, 0, 0", kMost), fmt::format("1, {}, 0", kMost), fmt::format("1, 0, {}", kMost)})
    EXPECT_EQ(blocks(most), 0) << most;
  EXPECT_THAT(refusal("1.5, 0, 0"), HasSubstr("the threads of occupancy() must be a whole number, not 1.5"));
  EXPECT_THAT(refusal("1, 'x', 0"),
              HasSubstr("the registers of occupancy() must be a whole number, not 'x'"));
  EXPECT_THAT(refusal("1, 0, 0.5"),
              HasSubstr("the shared memory of occupancy() must be a whole number, not 0.5"));
  EXPECT_EQ(blocks("64.0, 8.0, 256.0"), blocks("64, 8, 256"));
  for (const char* name : {"max_blocks_per_multiprocessor", "max_threads_per_multiprocessor",
                           "registers_per_multiprocessor", "shared_memory_per_multiprocessor", "warp_size"}) {
    EXPECT_THAT(refusal("1, 1, 1", device({{name, ""}})),
                HasSubstr(fmt::format("occupancy() needs device.{}: name a device", name)));
    EXPECT_THAT(refusal("1, 1, 1", device({{name, -1}})),
                HasSubstr(fmt::format("device.{} cannot be -1", name)));
    EXPECT_THAT(refusal("1, 1, 1", device({{name, 1.5}})),
                HasSubstr(fmt::format("device.{} must be a whole number, not 1.5", name)));
    EXPECT_THAT(refusal("1, 1, 1", device({{name, "x"}})), HasSubstr("must be a whole number, not 'x'"));
    const std::string none = refusal("1, 1, 1", device({{name, 0}}));
    EXPECT_THAT(none, HasSubstr(std::string(name) == "warp_size" ? "device.warp_size cannot be 0" : "none"))
        << name;
  }
  EXPECT_THAT(refusal("1, 1, 1", device({{"register_allocation_unit", 0.5}})),
              HasSubstr("must be a whole number"));
}

/// Compiled into a search space it is what the evaluator says; the device is large, so that every unit shows.
TEST(OccupancyEquations, AConditionOfASpaceMeansTheSame) {
  const std::vector<Parameter> parameters{listed("t", {1, 32, 33, 96}), listed("r", {0, 1, 8, 9, 255}),
                                          listed("s", {0, 1, 128, 129, 6000})};
  using Changes = std::vector<std::pair<std::string, Value>>;
  for (const Changes& changes : {Changes{},
                                 Changes{{"compute_capability", 79}},
                                 Changes{{"compute_capability", 80}},
                                 Changes{{"shared_allocation_unit", 0}, {"register_allocation_unit", 0}},
                                 Changes{{"shared_allocation_unit", 1}, {"warp_size", 1}},
                                 Changes{{"register_allocation_unit", 1}, {"warp_size", 1}},
                                 Changes{{"shared_allocation_unit", 3}, {"warp_size", 64}}}) {
    for (const char* text : {"occupancy(t, r, s) % 5 == 2", "occupancy(t, 0, s) >= 190", "occupancy(t, r, 0) < 1000"}) {
      std::vector<Restriction> restrictions(1);
      restrictions[0].expression = Expression::parse(text);
      SpaceOptions options;
      options.constants = device(changes);
      EXPECT_TRUE(test::all_of(SearchSpace::build(parameters, restrictions, options)) ==
                  test::brute_force(parameters, restrictions, options.constants))
          << text;
    }
  }
}

}  // namespace
}  // namespace ergotune
