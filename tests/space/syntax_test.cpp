// The edges of the expression language: what it reads as numbers and texts, where its faults are, how deep it
// goes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ergotune/base/error.hpp"
#include "ergotune/space/expression.hpp"
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

TEST(Syntax, FaultsOfEvaluationSayWhatIsWrong) {
  for (const auto& [text, words] : {std::pair{"int(9223372036854775808.0)", "64 bits"},
                                    {"floor(-9223372036854777856.0)", "64 bits"},
                                    {"-(-huge - 1)", "64 bits"},
                                    {"(-huge - 1) // -1", "64 bits"},
                                    {"abs(-huge - 1)", "64 bits"},
                                    {"2 ** 63", "64 bits"},
                                    {"exp(710)", "too large"},
                                    {"10.0 ** 309", "too large"},
                                    {"0.0 ** -1", "division by zero"},
                                    {"1.0 // 0", "division by zero"},
                                    {"1 / 0.0", "division by zero"},
                                    {"(-2) ** 0.5", "not real"},
                                    {"log(0.0)", "not positive"},
                                    {"log2(-1)", "log2() of a number that is not positive"},
                                    {"log(4, 0)", "base that is not positive"},
                                    {"log(4, -2)", "base that is not positive"},
                                    {"log(4, 1)", "division by zero"},
                                    {"log(0, 2)", "not positive"},
                                    {"min([])", "min() of an empty list"},
                                    {"max(3)", "max() of one value needs a list"},
                                    {"len(3)", "needs a list or a text"},
                                    {"int('+-5')", "cannot read"},
                                    {"int('+')", "cannot read"},
                                    {"int('')", "cannot read"},
                                    {"int('5 5')", "cannot read"},
                                    {"float('1x')", "cannot read"},
                                    {"float('')", "cannot read"},
                                    {"3 in s", "needs a list"},
                                    {"s in 3", "needs a list"},
                                    {"s > 1", "no order"},
                                    {"round(s)", "needs a number"},
                                    {"round(1.5, s)", "needs a number"},
                                    {"round(1.5, 1.0)", "whole number of digits"},
                                    {"+s", "+ needs a number"},
                                    {"s + 1", "+ needs a number"},
                                    {"1 - s", "- needs a number"},
                                    {"sqrt(s)", "sqrt() needs a number"}}) {
    try {
      ADD_FAILURE() << text << " gave " << Expression::parse(text).evaluate(kNames).to_literal();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words)) << text;
    }
  }
}

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

TEST(Syntax, FaultsOfReadingAreShownWhereTheyAre) {
  for (const auto& [text, column] : {std::pair{"  ", 1},
                                     {"1 +", 4},
                                     {"(1 + 2", 7},
                                     {"[1, 2", 6},
                                     {"(1 ]", 4},
                                     {"1 2", 3},
                                     {"1 'a'", 3},
                                     {"a = 1", 3},
                                     {"a && b", 3},
                                     {"a | b", 3},
                                     {"a + !b", 5},
                                     {"a $", 3},
                                     {"a . b", 3},
                                     {"3x", 2},
                                     {"1e", 2},
                                     {"1e+", 2},
                                     {"1_", 2},
                                     {"1__0", 2},
                                     {"1._5", 3},
                                     {"1.5.5", 4},
                                     {"0x", 1},
                                     {"0xg", 1},
                                     {"a + 0x8000000000000000", 5},
                                     {"0x1g", 4},
                                     {"a * 9223372036854775808", 5},
                                     {"18446744073709551616", 1},
                                     {"-9223372036854775808 ** 2", 2},
                                     {"a + 'abc", 5},
                                     {"'abc\\", 1},
                                     {"a if b", 7},
                                     {"a if b else", 12},
                                     {"a not b", 3},
                                     {"a + in", 5},
                                     {"maxx(1)", 1},
                                     {"1 + sqrt(1, 2)", 5},
                                     {"1 + max(1, [2])", 12},
                                     {"[1] + 2", 1},
                                     {"2 * [1]", 5},
                                     {"not [1]", 5},
                                     {"-[1]", 2},
                                     {"[1] and 2", 1},
                                     {"a or [1]", 6},
                                     {"[1] if a else 2", 1},
                                     {"2 if [1] else 2", 6},
                                     {"2 if a else [1]", 13},
                                     {"[1] < 2", 1},
                                     {"1 < [2]", 5},
                                     {"1 in [1] in [2]", 6},
                                     {"1 in [1] < 2", 6},
                                     {"[[1]]", 2},
                                     {"abs([1])", 5},
                                     {"(1, 2)", 1},
                                     {"a + (1,)", 5}})
    EXPECT_EQ(column_of_fault(text), column) << text;
  EXPECT_EQ(column_of_fault(std::string("a \x01")), 3);
  try {
    Expression::parse(std::string("\x01"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"\\x01\" is not part of"));
    EXPECT_EQ(error.place().column, 0) << "in no file";
  }
}

TEST(Syntax, FunctionsSayHowManyArgumentsTheyTake) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      Expression::parse(text);
    } catch (const UserError& error) {
      return error.message();
    }
    return {};
  };
  EXPECT_THAT(refusal("sqrt()"), HasSubstr("sqrt() takes 1 argument, not 0"));
  EXPECT_THAT(refusal("log(1, 2, 3)"), HasSubstr("log() takes 1 or 2 arguments, not 3"));
  EXPECT_THAT(refusal("occupancy(1)"), HasSubstr("occupancy() takes 3 arguments, not 1"));
  EXPECT_THAT(refusal("max()"), HasSubstr("max() takes one or more arguments, not 0"));
  for (const std::string one : {"abs", "ceil", "floor", "sqrt", "log2", "exp", "int", "float", "bool", "len"})
    for (const auto& [arguments, count] : {std::pair{"", 0}, {"1, 2", 2}})
      EXPECT_THAT(refusal(one + "(" + arguments + ")"), HasSubstr(fmt::format("{}() takes 1 argument, not {}", one, count)));
  for (const std::string two : {"round", "log"})
    for (const auto& [arguments, count] : {std::pair{"", 0}, {"1, 2, 3", 3}})
      EXPECT_THAT(refusal(two + "(" + arguments + ")"), HasSubstr(fmt::format("{}() takes 1 or 2 arguments, not {}", two, count)));
  for (const auto& [arguments, count] : {std::pair{"1, 2", 2}, {"1, 2, 3, 4", 4}})
    EXPECT_THAT(refusal(fmt::format("occupancy({})", arguments)), HasSubstr(fmt::format("occupancy() takes 3 arguments, not {}", count)));
  for (const char* right :
       {"abs(1)", "round(1)", "round(1, 2)", "log(1)", "log(1, 2)", "occupancy(1, 2, 3)", "min(1)", "min(1, 2, 3)", "len([])"})
    EXPECT_EQ(refusal(right), "");
  const auto many = [](int count, const char* function = "max") {
    std::string text = std::string(function) + "((1)";
    for (int i = 1; i < count; ++i) text += ", -(1)";
    return text + ")";
  };
  EXPECT_EQ(refusal(many(1000)), "");
  EXPECT_THAT(refusal(many(1001)), HasSubstr("not 1001"));
  EXPECT_EQ(refusal(many(1000, "min")), "");
  EXPECT_THAT(refusal(many(1001, "min")), HasSubstr("not 1001"));
}

TEST(Syntax, GoesTwoHundredDeepAndNoDeeper) {
  const auto nested = [](const std::string& open, int times, const std::string& close = "") {
    std::string text;
    for (int i = 0; i < times; ++i) text += open;
    text += "1";
    for (int i = 0; i < times; ++i) text += close;
    return text;
  };
  for (const auto& [open, close] : {std::pair{"(", ")"}, {"not ", ""}, {"+", ""}, {"1 - (", ")"}, {"2**", ""}, {"2**(", ")"}, {"1 if 1 else ", ""}}) {
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
  EXPECT_TRUE(
      std::isnan(Expression::parse(Value(std::nan("")).to_literal()).evaluate(Constants{}).as_real()));
  EXPECT_EQ(Value(-3.0).to_string(), "-3.0");
  EXPECT_EQ(Value(2.0).as_integer(), 2);
  EXPECT_EQ(Value(true).as_integer(), 1);
  EXPECT_EQ(Value(false).as_real(), 0);
  EXPECT_THROW(Value(1).as_string(), Error);
  EXPECT_THROW(Value("1").as_integer(), Error);
}

TEST(Values, AreOrderedNumbersBeforeTexts) {
  EXPECT_TRUE(Value(9) < Value("1"));
  EXPECT_FALSE(Value("1") < Value(9));
  EXPECT_TRUE(Value("a") < Value("b"));
  EXPECT_FALSE(Value("a") < Value("a"));
  EXPECT_TRUE(Value(1) < Value(1.5));
  EXPECT_TRUE(Value(1.5) < Value(2));
  EXPECT_FALSE(Value(2) < Value(2.0));
  EXPECT_FALSE(Value(2.0) < Value(2));
  EXPECT_FALSE(Value(2.5) < Value(2));
  EXPECT_TRUE(Value(false) < Value(true));
}

}  // namespace
}  // namespace ergotune
