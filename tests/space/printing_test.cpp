// What is printed of an expression, what counts as the same, and occupancy as the builder compiles it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brute_force.hpp"
#include "ergotune/base/error.hpp"
#include "space/expression_tree.hpp"

namespace ergotune {
namespace {

TEST(Printing, BracketsStandOnlyWhereTheyMeanSomething) {
  for (const char* text : {"a + b + c",
                           "a - b - c",
                           "a - (b + c)",
                           "a - (b - c)",
                           "a * (b + c)",
                           "(a + b) * c",
                           "a * b / c",
                           "a / (b * c)",
                           "a % b // c",
                           "a % (b // c)",
                           "a**b**c",
                           "(a**b)**c",
                           "a**-b",
                           "(-a)**b",
                           "-a**b",
                           "-(a + b)",
                           "-(a * b)",
                           "-a * b",
                           "a - -b",
                           "not a",
                           "not not a",
                           "not (a and b)",
                           "not a and b",
                           "not a == b",
                           "(not a) == b",
                           "a == (not b)",
                           "(a < b) == c",
                           "a < (b == c)",
                           "a < b == c",
                           "a + b < c * d",
                           "(a < b) + c",
                           "a and b and c",
                           "a and (b or c)",
                           "a and b or c",
                           "(a or b) and c",
                           "a if b else c if d else e",
                           "(a if b else c) if d else e",
                           "a if (b if c else d) else e",
                           "(a if b else c) + d",
                           "(a if b else c) or d",
                           "a or b if c or d else e or f",
                           "a in [1, 2]",
                           "a not in [b, c + 1]",
                           "max(a, b if c else d)",
                           "max([a, b])",
                           "min(a, -1) + 2",
                           "a - -1",
                           "(-1)**a",
                           "-1 * a",
                           "a != b",
                           "a >= b > c",
                           "'it\\'s' + s"}) {
    const auto parsed = Expression::parse(text);
    const std::string printed = parsed.to_string();
    EXPECT_TRUE(same_form(parsed.root(), Expression::parse(printed).root()))
        << text << " printed as " << printed;
    EXPECT_LE(printed.size(), std::string(text).size()) << text << " printed as " << printed;
  }
}

TEST(Printing, FormsAreTheSameWhereEverythingIs) {
  const auto same = [](const char* a, const char* b) {
    return same_form(Expression::parse(a).root(), Expression::parse(b).root());
  };
  EXPECT_TRUE(same("a + b * 2", "(a) + (b * 2)"));
  for (const auto& [a, b] : {std::pair{"a + b", "a - b"},
                             {"a + b", "b + a"},
                             {"a + b", "a + b + c"},
                             {"-a", "+a"},
                             {"-a", "not a"},
                             {"a < b", "a <= b"},
                             {"a < b", "a < b < c"},
                             {"a and b", "a or b"},
                             {"a and b", "a and b and c"},
                             {"min(a, b)", "max(a, b)"},
                             {"1", "1.0"},
                             {"1", "True"},
                             {"1", "2"},
                             {"'a'", "'b'"},
                             {"'a'", "a"},
                             {"a", "b"},
                             {"a if b else c", "a if b else d"},
                             {"0.0", "-0.0"},
                             {"a in [1]", "a not in [1]"}})
    EXPECT_FALSE(same(a, b)) << a << " and " << b;
}

TEST(Printing, OccupancyOfEveryDeviceIsCompiledAsItIsEvaluated) {
  Parameter threads, registers, shared;
  threads.name = "threads";
  threads.values = {1, 31, 32, 33, 64, 256, 1000, 1024};
  registers.name = "registers";
  registers.values = {0, 1, 7, 8, 9, 32, 33, 64, 255};
  shared.name = "shared";
  shared.values = {0, 1, 128, 129, 256, 257, 6000, 49152, 49153};
  const std::vector<Parameter> parameters{threads, registers, shared};
  const Constants device{{"device.max_blocks_per_multiprocessor", 16},
                         {"device.max_threads_per_multiprocessor", 2048},
                         {"device.registers_per_multiprocessor", 65536},
                         {"device.shared_memory_per_multiprocessor", 49152},
                         {"device.warp_size", 32}};
  for (const Constants& more : {Constants{},
                                {{"device.compute_capability", 79}},
                                {{"device.compute_capability", 80}},
                                {{"device.register_allocation_unit", 0}},
                                {{"device.register_allocation_unit", 1}},
                                {{"device.register_allocation_unit", 512}},
                                {{"device.shared_allocation_unit", 0}},
                                {{"device.shared_allocation_unit", 1}},
                                {{"device.shared_allocation_unit", 1024}},
                                {{"device.warp_size", 64}},
                                {{"device.max_blocks_per_multiprocessor", 0}},
                                {{"device.max_threads_per_multiprocessor", 0}},
                                {{"device.registers_per_multiprocessor", 0}},
                                {{"device.shared_memory_per_multiprocessor", 0}}}) {
    SpaceOptions options;
    options.constants = device;
    for (const auto& [name, value] : more) options.constants[name] = value;
    for (const char* text :
         {"occupancy(threads, registers, shared) == 4", "occupancy(threads, registers, shared) > 7",
          "occupancy(threads, registers, shared) % 3 == 1",
          "occupancy(threads, 32, shared) * threads >= 1024"}) {
      std::vector<Restriction> restrictions(1);
      restrictions[0].expression = Expression::parse(text);
      EXPECT_EQ(test::all_of(SearchSpace::build(parameters, restrictions, options)),
                test::brute_force(parameters, restrictions, options.constants))
          << text;
    }
  }
  // what makes no sense is refused by both
  for (const char* text : {"occupancy(threads - 1, 0, 0) > 0", "occupancy(threads, registers - 1, 0) > 0",
                           "occupancy(threads, 0, shared - 1) > 0", "occupancy(threads * 2.5, 0, 0) > 0"}) {
    std::vector<Restriction> restrictions(1);
    restrictions[0].expression = Expression::parse(text);
    SpaceOptions options;
    options.constants = device;
    EXPECT_THROW(SearchSpace::build(parameters, restrictions, options), UserError) << text;
  }
}

}  // namespace
}  // namespace ergotune
