// The edges of the expression language: what it reads as numbers and texts, where its faults are, how deep it goes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"
#include "space/python_cases.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

// clang-format off
constexpr Case kCases[] = {
    {"1.", "1.0"}, {"1.e2", "100.0"}, {"1.5e+2", "150.0"}, {"15e-1", "1.5"}, {"1e400", "1e999"}, {"-1e400", "-1e999"},
    {"1e-400", "0.0"}, {"1E-400", "0.0"}, {"0X1f", "31"}, {"0x7fffffffffffffff", "9223372036854775807"}, {"0x0", "0"},
    {"-9223372036854775808", "-9223372036854775808"}, {"1_2_3", "123"}, {"1.2_5", "1.25"}, {"00", "0"}, {"0.5", "0.5"},
    {"'a\\n\\t\\r\\\\\\'b'", "'a\\n\\t\\r\\\\\\'b'"}, {"\"it's\"", "'it\\'s'"}, {"''", "''"}, {"\t a \n", "7"},
    {"math.sqrt(4)", "2.0"}, {"math.floor(2.5)", "2"}, {"max((1,))", "1"}, {"max([1, 2],)", "2"}, {"len(())", "0"},
    {"a in (7,)", "True"},
    {"int(9223372036854774784.0)", "9223372036854774784"}, {"int(-9223372036854775808.0)", "-9223372036854775808"},
    {"(-huge - 1) % -1", "0"}, {"(-huge - 1) // 1", "-9223372036854775808"}, {"exp(709)", "8.218407461554972e+307"},
    {"int('+5')", "5"}, {"int('\\t7\\n')", "7"}, {"log(2, 4)", "0.5"}, {"log(8, 0.5)", "-3.0"}, {"1e308 * 10", "1e999"},
    {"round(1.5, 299)", "1.5"}, {"round(1e308, -308)", "1e+308"}, {"round(1e307, -308)", "0.0"}, {"round(123.0, -309)", "0.0"},
    {"round(-1.5, 0)", "-2.0"}, {"round(149, -2)", "100"}, {"1 > 2 > 1 / 0", "False"}, {"0 ** 1", "0"}, {"0.0 ** 0.5", "0.0"},
    {"(-2.0) ** 2", "4.0"}, {"4 ** -1", "0.25"}, {"abs(-huge)", "9223372036854775807"}, {"-huge - 1 < 0", "True"},
    {"0 == 0.0 == f", "True"}, {"'b' >= 'b'", "True"}, {"'b' > 'b'", "False"}, {"2 <= 2.0", "True"}, {"2 >= 2.5", "False"},
    {"min(2, 2.0)", "2"}, {"max(2.0, 2)", "2.0"}, {"bool(-1)", "True"}, {"not not x", "True"}, {"a if x else 1 / 0", "7"},
};
// clang-format on

TEST(Syntax, ReadsNumbersAndTextsAsPythonDoes) { expect_as_python(kCases); }

/// Where the parser stops; 0 where it does not.
int column_of_fault(const std::string& text) {
  try {
    Expression::parse(text, SourcePlace{"file.toml", 3, 1});
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(), HasSubstr(fmt::format("(column {} of ", error.place().column)));
    return error.place().column;
  }
  return 0;
}

TEST(Syntax, GoesTwoHundredDeepAndNoDeeper) {
  const auto nested = [](const std::string& open, int times, const std::string& close = "") {
    std::string text;
    for (int i = 0; i < times; ++i) text += open;
    text += "1";
    for (int i = 0; i < times; ++i) text += close;
    return text;
  };
  for (const auto& [open, close] : {std::pair{"(", ")"},
                                    {"not ", ""},
                                    {"+", ""},
                                    {"1 - (", ")"},
                                    {"2**", ""},
                                    {"2**(", ")"},
                                    {"1 if 1 else ", ""}}) {
    EXPECT_NE(column_of_fault(nested(open, 200, close)), 0) << open;
    EXPECT_NE(column_of_fault(nested(open, 100'000, close)), 0) << open << ": bounded before the stack is";
    if (std::string(open) == "2**(") continue;  // two levels each
    EXPECT_EQ(column_of_fault(nested(open, 199, close)), 0) << open;
  }
  EXPECT_EQ(column_of_fault(nested("", 199, " - 1")), 0);
  EXPECT_NE(column_of_fault(nested("", 200, " - 1")), 0);
  EXPECT_EQ(column_of_fault(nested("", 900, " or not 1")), 0) << "side by side is not deep";
}

TEST(Syntax, MessagesShowThePlaceAndNotAllOfALongText) {
  std::string text = "1";
  for (int i = 0; i < 100'000; ++i) text += " + x";
  try {
    (void)Expression::parse(text + " ? y");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_LT(std::string(error.what()).size(), 400u);
  }
}

TEST(Values, HaveLiteralsThatReadBack) {
  EXPECT_EQ(Value("a\n\t\r'\\b").to_literal(), "'a\\n\\t\\r\\'\\\\b'");
  EXPECT_EQ(Value(std::numeric_limits<double>::infinity()).to_literal(), "1e999");
  EXPECT_EQ(Value(-std::numeric_limits<double>::infinity()).to_literal(), "-1e999");
  EXPECT_TRUE(std::isnan(Expression::parse(Value(std::nan("")).to_literal()).evaluate(Constants{}).as_real()));
  EXPECT_EQ(Value(-3.0).to_string(), "-3.0");
  EXPECT_EQ(Value(2.0).as_integer(), 2);
  EXPECT_EQ(Value(true).as_integer(), 1);
  EXPECT_EQ(Value(false).as_real(), 0);
  EXPECT_THROW(Value(1).as_string(), Error);
  EXPECT_THROW(Value("1").as_integer(), Error);
}

}  // namespace
}  // namespace ergotune
