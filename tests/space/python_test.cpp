// More of what CPython 3.11 printed: rounding, conversions, signs of quotients, ends of 64 bits, chains; and
// occupancy by hand.
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "ergotune/space/expression.hpp"
#include "space/python_cases.hpp"

namespace ergotune {
namespace {

// clang-format off
constexpr Case kCases[] = {
    {"round(big, 0)", "9007199254740993"},
    {"round(big, 3)", "9007199254740993"},
    {"round(-big, 0)", "-9007199254740993"},
    {"round(-1234, -2)", "-1200"},
    {"round(1250, -2)", "1200"},
    {"round(1350, -2)", "1400"},
    {"round(15, -1)", "20"},
    {"round(25, -1)", "20"},
    {"round(7, -400)", "0"},
    {"round(12345.678, -2)", "12300.0"},
    {"round(-0.5)", "0"},
    {"round(y, 1)", "-2.8"},
    {"round(2.5, 0)", "2.0"},
    {"round(1e300, -299)", "1e+300"},
    {"round(x, 300)", "0.5"},
    {"round(1.25e-5, 6)", "1.3e-05"},
    {"round(True)", "1"},
    {"round(0.125, 2)", "0.12"},
    {"int(' 42 ')", "42"},
    {"int('+7')", "7"},
    {"int('-7')", "-7"},
    {"int(-0.5)", "0"},
    {"int('007')", "7"},
    {"float('-1e3')", "-1000.0"},
    {"float(True)", "1.0"},
    {"float(big)", "9007199254740992.0"},
    {"'\\q.\\d' == '\\\\q.\\\\d'", "True"},
    {"'\\a\\b\\f\\v' == '\a\b\f\v'", "True"},
    {"'a\\\"b' == \"a\\\"b\"", "True"},
    {"bool('')", "False"},
    {"bool(0.0)", "False"},
    {"bool(y)", "True"},
    {"len([])", "0"},
    {"len('')", "0"},
    {"len([1])", "1"},
    {"min(1, 1.0)", "1"},
    {"max(1, 1.0)", "1"},
    {"max(1.0, 1)", "1.0"},
    {"min(2, b, -3.0)", "-3"},
    {"max('a', 'b')", "'b'"},
    {"min(['b', 'a'])", "'a'"},
    {"abs(-0.0)", "0.0"},
    {"abs(t)", "1"},
    {"abs(-big)", "9007199254740993"},
    {"ceil(-1.5)", "-1"},
    {"ceil(2.0)", "2"},
    {"floor(2.0)", "2"},
    {"floor(-7)", "-7"},
    {"floor(1e15 + 0.5)", "1000000000000000"},
    {"ceil(t)", "1"},
    {"log(8, 2)", "3.0"},
    {"log(100, 10)", "2.0"},
    {"log(0.5)", "-0.6931471805599453"},
    {"log2(0.125)", "-3.0"},
    {"exp(1)", "2.718281828459045"},
    {"exp(-1)", "0.36787944117144233"},
    {"sqrt(0)", "0.0"},
    {"sqrt(0.25)", "0.5"},
    {"2 ** 62", "4611686018427387904"},
    {"(-2) ** 63", "-9223372036854775808"},
    {"(-1) ** 99", "-1"},
    {"0 ** 0", "1"},
    {"0.0 ** 0", "1.0"},
    {"4 ** 0.5", "2.0"},
    {"4 ** -0.5", "0.5"},
    {"(-8.0) ** 3", "-512.0"},
    {"(-8) ** 3.0", "-512.0"},
    {"2.0 ** -2", "0.25"},
    {"1 ** huge", "1"},
    {"(-1) ** huge", "-1"},
    {"7 // 7", "1"},
    {"-7 // 7", "-1"},
    {"-8 // 7", "-2"},
    {"8 // -7", "-2"},
    {"7 % 7", "0"},
    {"-7 % 7", "0"},
    {"-1 % 7", "6"},
    {"1 % -7", "-6"},
    {"0 % -7", "0"},
    {"7.5 // 2.5", "3.0"},
    {"-7.5 // 2.5", "-3.0"},
    {"7.0 % -3", "-2.0"},
    {"-0.0 % 5", "0.0"},
    {"huge // 1", "9223372036854775807"},
    {"(-huge - 1) // 2", "-4611686018427387904"},
    {"huge % 10", "7"},
    {"-huge // 10", "-922337203685477581"},
    {"big / 2", "4503599627370496.0"},
    {"1 / 3", "0.3333333333333333"},
    {"huge / huge", "1.0"},
    {"(huge - 1) / huge", "1.0"},
    {"big * 1.0", "9007199254740992.0"},
    {"big + 0.0", "9007199254740992.0"},
    {"huge - -0", "9223372036854775807"},
    {"-huge + huge", "0"},
    {"a - b * 2 ** 2", "19"},
    {"-a ** 2", "-49"},
    {"-(a ** 2)", "-49"},
    {"not t or t", "True"},
    {"not (t or t)", "False"},
    {"1 < 2 == True", "False"},
    {"1 < 2 != 3 > 2", "True"},
    {"b < x < a < n", "True"},
    {"'b' > 'abc'", "True"},
    {"'abc' >= s", "True"},
    {"s <= 'abc'", "True"},
    {"'' in s", "True"},
    {"'bc' in s", "True"},
    {"x in (0.5,)", "True"},
    {"t in (1, 2)", "True"},
    {"b in [-3]", "True"},
    {"'a' in ('a', 'b')", "True"},
    {"1 == '1'", "False"},
    {"1 != '1'", "True"},
    {"a <= 7 <= 7.0", "True"},
    {"a >= 7.5", "False"},
    {"a if 0 else b if 0 else x", "0.5"},
    {"t and x", "0.5"},
    {"f or ''", "''"},
    {"0 or 0.0", "0.0"},
    {"1 and 2 and 3", "3"},
    {"0 or '' or b", "-3"},
    {"t - f", "1"},
    {"t * t + t", "2"},
    {"+t", "1"},
    {"-f", "0"},
    {"big == 9007199254740993", "True"},
    {"big >= 9007199254740992.0", "True"},
    {"big < 9007199254740994.0", "True"},
    {"huge == 9223372036854775807.0", "False"},
    {"huge < 1e300", "True"},
    {"-huge > -1e300", "True"},
    {"x == 0.5", "True"},
    {"1e15", "1000000000000000.0"},
    {"1e-5", "1e-05"},
    {"123456789.0", "123456789.0"},
    {"0.1 * 3", "0.30000000000000004"},
    {"1_0.5_0", "10.5"},
    {"1e1_0", "10000000000.0"},
    {"0xFf", "255"},
    {"1E2", "100.0"},
};
// clang-format on

TEST(Expression, EvaluatesTheRareAsPythonDoesToo) { expect_as_python(kCases); }

TEST(Occupancy, CountsInTheDevicesUnitsAndRefusesNonsense) {
  const auto blocks = [](const char* text, const Constants& more = {}) {
    Constants device{{"device.max_blocks_per_multiprocessor", 10000},
                     {"device.max_threads_per_multiprocessor", 320000},
                     {"device.registers_per_multiprocessor", 65536},
                     {"device.shared_memory_per_multiprocessor", 49152},
                     {"device.warp_size", 32}};
    for (const auto& [name, value] : more) device[name] = value;
    return Expression::parse(text).evaluate(device).as_integer();
  };
  EXPECT_EQ(Expression::parse("occupancy(a, 0, 0)").names(),
            (std::vector<std::string>{"a", "device.max_blocks_per_multiprocessor",
                                      "device.max_threads_per_multiprocessor",
                                      "device.registers_per_multiprocessor",
                                      "device.shared_memory_per_multiprocessor", "device.warp_size"}));
  EXPECT_EQ(Expression::parse("min(a, 0)").names(), std::vector<std::string>{"a"});
  EXPECT_EQ(blocks("occupancy(32, 0, 100)"), 192) << "256 bytes each";
  EXPECT_EQ(blocks("occupancy(32, 0, 100)", {{"device.compute_capability", 79}}), 192);
  EXPECT_EQ(blocks("occupancy(32, 0, 100)", {{"device.compute_capability", 80}}), 384) << "128 bytes each";
  EXPECT_EQ(blocks("occupancy(32, 0, 100)", {{"device.shared_allocation_unit", 1}}), 491);
  EXPECT_EQ(blocks("occupancy(32, 0, 100)", {{"device.shared_allocation_unit", 0}}), 491);
  EXPECT_EQ(blocks("occupancy(32, 1, 0)"), 256) << "256 registers a warp";
  EXPECT_EQ(blocks("occupancy(32, 1, 0)", {{"device.register_allocation_unit", 512}}), 128);
  EXPECT_EQ(blocks("occupancy(32, 1, 0)", {{"device.register_allocation_unit", 0}}), 2048);
  EXPECT_EQ(blocks("occupancy(64.0, 1, 1)"), 128) << "two warps";
  EXPECT_EQ(blocks("occupancy(32, 0, 0)", {{"device.max_blocks_per_multiprocessor", 0}}), 0);
  EXPECT_EQ(blocks("occupancy(2 ** 40, 0, 0)"), 0);
  for (const char* text : {"occupancy(0, 0, 0)", "occupancy(32, -1, 0)", "occupancy(32, 0, -1)",
                           "occupancy(2 ** 40 + 1, 0, 0)", "occupancy(32, 2 ** 40 + 1, 0)",
                           "occupancy(32, 0, 2 ** 40 + 1)", "occupancy(1.5, 0, 0)", "occupancy('a', 0, 0)"})
    EXPECT_THROW(blocks(text), UserError) << text;
  EXPECT_THROW(blocks("occupancy(32, 0, 0)", {{"device.warp_size", 0}}), UserError);
  EXPECT_THROW(blocks("occupancy(32, 0, 0)", {{"device.max_blocks_per_multiprocessor", -1}}), UserError);
}

}  // namespace
}  // namespace ergotune
