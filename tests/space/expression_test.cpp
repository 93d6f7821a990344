// Expressions mean what Python says: the expected values below were printed by CPython 3.11.
#include "ergotune/space.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ergotune/random.hpp"
#include "error_of.hpp"
#include "space/expression/expression_tree.hpp"
#include "space/python_cases.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

constexpr Case kCases[] = {
    {"1 + 2 * 3", "7"},
    {"(1 + 2) * 3", "9"},
    {"2 ** 3 ** 2", "512"},
    {"-2 ** 2", "-4"},
    {"(-2) ** 2", "4"},
    {"2 ** -1", "0.5"},
    {"7 / 2", "3.5"},
    {"8 / 2", "4.0"},
    {"-7 // 2", "-4"},
    {"7 // -2", "-4"},
    {"-7 % 3", "2"},
    {"7 % -3", "-2"},
    {"-7.5 // 2", "-4.0"},
    {"-7.5 % 2", "0.5"},
    {"7.5 % -2", "-0.5"},
    {"5 % 2.5", "0.0"},
    {"1e20 % 7", "2.0"},
    {"big / 3", "3002399751580331.0"},
    {"huge / 2", "4.611686018427388e+18"},
    {"huge / 3", "3.0744573456182584e+18"},
    {"big / 1", "9007199254740992.0"},
    {"(big + 1) / 7", "1286742750677284.8"},
    {"-huge / 1024", "-9007199254740992.0"},
    {"n / 3 * 3 == n", "True"},
    {"1 == 1.0", "True"},
    {"True == 1", "True"},
    {"t + t", "2"},
    {"not a", "False"},
    {"not 0.0", "True"},
    {"a or b", "7"},
    {"0 or b", "-3"},
    {"a and b", "-3"},
    {"0 and 1 / 0", "0"},
    {"1 or 1 / 0", "1"},
    {"f and s", "False"},
    {"'' or s", "'abc'"},
    {"1 < 2 < 3", "True"},
    {"1 < 3 < 2", "False"},
    {"3 > 2 > 1 != 0", "True"},
    {"1 < 2 > 1", "True"},
    {"a in (1, 7, 9)", "True"},
    {"a not in [1, 7, 9]", "False"},
    {"a in ()", "False"},
    {"7.0 in (1, 7)", "True"},
    {"'a' in s", "True"},
    {"'x' not in s", "True"},
    {"s == 'abc'", "True"},
    {"s != 1", "True"},
    {"s < 'abd'", "True"},
    {"s + 'd'", "'abcd'"},
    {"a if a > 5 else b", "7"},
    {"a if b > 5 else b", "-3"},
    {"1 if t else 1 / 0", "1"},
    {"min(3, 1, 2)", "1"},
    {"max(a, b, x)", "7"},
    {"min([4, 2, 8])", "2"},
    {"max((1, 2.5))", "2.5"},
    {"abs(b)", "3"},
    {"abs(y)", "2.75"},
    {"ceil(x)", "1"},
    {"ceil(-0.5)", "0"},
    {"floor(y)", "-3"},
    {"ceil(7)", "7"},
    {"round(0.5)", "0"},
    {"round(1.5)", "2"},
    {"round(2.5)", "2"},
    {"round(-1.5)", "-2"},
    {"round(2.675, 2)", "2.67"},
    {"round(1234, -2)", "1200"},
    {"round(7)", "7"},
    {"int(3.9)", "3"},
    {"int(-3.9)", "-3"},
    {"int('42')", "42"},
    {"int(True)", "1"},
    {"float(3)", "3.0"},
    {"float('2.5')", "2.5"},
    {"bool(0)", "False"},
    {"bool('x')", "True"},
    {"len([1, 2, 3])", "3"},
    {"len(s)", "3"},
    {"sqrt(16)", "4.0"},
    {"sqrt(2)", "1.4142135623730951"},
    {"log2(8)", "3.0"},
    {"log2(n)", "12.0"},
    {"log(1)", "0.0"},
    {"exp(0)", "1.0"},
    {"1e3", "1000.0"},
    {"1_000", "1000"},
    {"0x10", "16"},
    {"1 + 2 + 0x10", "19"},
    {".5 + 1.", "1.5"},
    {"1 + .5", "1.5"},
    {"-(-3)", "3"},
    {"- -3", "3"},
    {"+a", "7"},
    {"-t", "-1"},
    {"2 * 3 % 4", "2"},
    {"10 - 3 - 2", "5"},
    {"2 ** 0.5", "1.4142135623730951"},
    {"0.1 + 0.2", "0.30000000000000004"},
    {"1e16 + 1", "1e+16"},
    {"3 // 0.5", "6.0"},
    {"a * b // 2", "-11"},
    {"(n // 32) * 32 == n", "True"},
    {"a == 7 and b == -3 or 1 / 0", "True"},
    {"not a == b", "True"},
    {"not (a > b and t)", "False"},
    {"huge - 1 + 1", "9223372036854775807"},
    {"-huge - 1", "-9223372036854775808"},
    {"big == 9007199254740992.0", "False"},
    {"big > 9007199254740992.0", "True"},
    {"huge < 9223372036854775808.0", "True"},
    {"1 if x else 2 if y else 3", "1"},
    {"(1 if x else 2) + 1", "2"},
    {"0.0 == -0.0", "True"},
    {"min(1, True)", "1"},
    {"5 // 1.0", "5.0"},
    {"-1 // 3", "-1"},
    {"-0.0", "-0.0"},
};

TEST(Expression, EvaluatesAsPythonDoes) { expect_as_python(kCases); }

TEST(Expression, PrintsWithFewParenthesesAndParsesBack) {
  for (const auto& [text, result] : kCases) {
    const auto expression = Expression::parse(text);
    const auto printed = expression.to_string();
    EXPECT_TRUE(same_form(expression.root(), Expression::parse(printed).root())) << text << " printed as " << printed;
  }
  for (const char* text : {"--0", "---0", "--0.0", "- -2", "---2.5", "-(-(3))", "--9223372036854775808", "-1e999"}) {
    const auto expression = Expression::parse(text);
    const auto printed = expression.to_string();
    EXPECT_TRUE(same_form(expression.root(), Expression::parse(printed).root())) << text << " printed as " << printed;
  }
  EXPECT_EQ(Expression::parse("((a) * ((b)))+(n/(3))").to_string(), "a * b + n / 3");
  EXPECT_EQ(Expression::parse("(a or b) and not (a == b)").to_string(), "(a or b) and not a == b");
  EXPECT_EQ(Expression::parse("2**(3**2)").to_string(), "2**3**2");
  EXPECT_EQ(Expression::parse("(2**3)**2").to_string(), "(2**3)**2");
  EXPECT_EQ(Expression::parse("a - (b - n)").to_string(), "a - (b - n)");
}

TEST(Expression, FailsWhereArithmeticDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"1 / 0", "division by zero"},   {"1 // 0", "division by zero"},  {"1 % 0", "division by zero"},
      {"1.5 % 0", "division by zero"}, {"0 ** -1", "division by zero"}, {"huge + 1", "64 bits"},
      {"huge * 2", "64 bits"},         {"2 ** 64", "64 bits"},          {"-huge - 2", "64 bits"},
      {"sqrt(-1)", "negative"},        {"log(0)", "not positive"},      {"(-8) ** 0.5", "not real"},
      {"s * 2.5", "needs a number"},   {"s < 1", "no order"},           {"-s", "needs a number"},
      {"exp(1000)", "too large"},      {"int('x')", "cannot read"},     {"ceil(1e300)", "64 bits"},
  };
  for (const auto& [text, words] : cases) {
    EXPECT_THAT(error_of([&, &text = text] { Expression::parse(text).evaluate(kNames); }), HasSubstr(words)) << text;
  }
}

TEST(Expression, RefusesWhatItCannotParse) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "missing"},
      {"1 +", "ends too early"},
      {"(1", "\")\" is missing"},
      {"1 2", "not expected"},
      {"a = 1", "write \"==\""},
      {"a && b", "\"and\""},
      {"maxx(1, 2)", "did you mean \"max\""},
      {"sqrt(1, 2)", "takes 1 argument"},
      {"'abc", "not closed"},
      {"'\\x41'", "the character itself"},
      {"'\\0'", "the character itself"},
      {"9223372036854775808", "64 bits"},
      {"3x", "cannot follow"},
      {"a $ b", "not part"},
      {"(1, 2)", "a list is not a value"},
      {"1 + [2]", "a list is not a value"},
      {"in", "not expected"},
  };
  for (const auto& [text, words] : cases) {
    EXPECT_THAT(error_of([&, &text = text] { Expression::parse(text); }), HasSubstr(words)) << text;
  }
  EXPECT_THROW(Expression::parse(std::string(5000, '(')), UserError);
  EXPECT_THROW(Expression::parse(std::string(5000, '-') + "1"), UserError);
}

TEST(Expression, NamesThePlaceOfAFault) {
  EXPECT_THAT(error_of([&] {
                Expression::parse("a + * b", SourcePlace{"file.toml", 12, 5});
              }),
              HasSubstr("file.toml:12:9"));
  EXPECT_THAT(error_of([&] {
                Expression::parse("widht * 2", SourcePlace{"file.toml", 3, 1}).evaluate(Constants{{"width", 1}});
              }),
              testing::AllOf(HasSubstr("file.toml:3:1"), HasSubstr("did you mean \"width\"?")));
}

TEST(Expression, KnowsItsNames) {
  EXPECT_EQ(Expression::parse("b * a + max(a, device.warp_size) if c else 'd'").names(),
            (std::vector<std::string>{"a", "b", "c", "device.warp_size"}));
}

// Random forms: printed, parsed, and printed again.
ExpressionPointer random_tree(Random& random, int depth) {
  using Kind = ExpressionNode::Kind;
  ExpressionNode node;
  const auto child = [&] { return random_tree(random, depth - 1); };
  if (depth == 0 || random.chance(0.2)) {
    if (random.chance(0.5)) {
      node.kind = Kind::name;
      node.text = random.chance(0.5) ? "x" : "dev.y_1";
    } else {
      switch (random.below(5)) {
        case 0:
          node.value = Value(static_cast<std::int64_t>(random()));
          break;
        case 1:
          node.value = Value((random.uniform() - 0.5) * std::pow(10.0, static_cast<double>(random.below(40)) - 20));
          break;
        case 2:
          node.value = Value(random.chance(0.5));
          break;
        case 3:
          node.value = Value("it's \\ \"text\"");
          break;
        default:
          node.value = Value(static_cast<std::int64_t>(random.below(10)) - 5);
      }
    }
    return std::make_shared<const ExpressionNode>(std::move(node));
  }
  switch (random.below(8)) {
    case 0:
      node.kind = Kind::unary;
      // a sign before a number is the number's own
      node.op = random.chance(0.5) ? Operator::negate : Operator::logical_not;
      node.children = {child()};
      if (node.op == Operator::negate && node.children[0]->kind == Kind::constant) node.op = Operator::logical_not;
      break;
    case 1:
    case 2:
    case 3:
      node.kind = Kind::binary;
      node.op = static_cast<Operator>(static_cast<int>(Operator::add) + static_cast<int>(random.below(7)));
      node.children = {child(), child()};
      break;
    case 4: {
      node.kind = random.chance(0.5) ? Kind::conjunction : Kind::disjunction;
      node.children = {child(), child()};
      for (auto& part : node.children)
        if (part->kind == node.kind) return part;  // nested ones are flattened by the parser
      break;
    }
    case 5:
      node.kind = Kind::comparison;
      node.children = {child(), child(), child()};
      node.comparisons = {static_cast<Relation>(random.below(6)), static_cast<Relation>(random.below(6))};
      break;
    case 6:
      node.kind = Kind::conditional;
      node.children = {child(), child(), child()};
      break;
    default:
      node.kind = Kind::call;
      node.function = Function::max;
      node.children = {child(), child()};
  }
  return std::make_shared<const ExpressionNode>(std::move(node));
}

TEST(Expression, AnyFormSurvivesPrintingAndParsing) {
  EXPECT_TRUE(rc::check("parse(print(form)) is the form", [](std::uint64_t seed) {
    Random random(seed);
    const auto tree = random_tree(random, 5);
    const std::string printed = print_expression(*tree);
    const auto parsed = Expression::parse(printed);
    if (!same_form(*tree, parsed.root())) RC_FAIL(printed + "\nread as\n" + parsed.to_string());
  }));
}

TEST(Template, RendersItsExpressions) {
  const auto options = Template::parse("-DN={{n * 2}} -DT={{s}} -O3");
  const Scope scope = [](std::string_view name) -> const Value* {
    const auto found = kNames.find(name);
    return found == kNames.end() ? nullptr : &found->second;
  };
  EXPECT_EQ(options.render(scope), "-DN=8192 -DT=abc -O3");
  EXPECT_EQ(options.names(), (std::vector<std::string>{"n", "s"}));
  EXPECT_EQ(Template::parse("plain").render(scope), "plain");
  EXPECT_THROW(Template::parse("{{n"), UserError);
  EXPECT_THROW(Template::parse("{{n +}}"), UserError);
}

// Guerreiro et al., eq. 1-5, on a Kepler: 16 blocks, 64 warps, 48 KiB, 64 Ki registers per multiprocessor.
TEST(Occupancy, FollowsTheEquations) {
  const Constants kepler{{"device.max_blocks_per_multiprocessor", 16},
                         {"device.max_threads_per_multiprocessor", 2048},
                         {"device.registers_per_multiprocessor", 65536},
                         {"device.shared_memory_per_multiprocessor", 49152},
                         {"device.warp_size", 32}};
  const auto blocks = [&](const char* text) { return Expression::parse(text).evaluate(kepler).as_integer(); };
  EXPECT_EQ(blocks("occupancy(64, 0, 0)"), 16);  // eq. 2: blocks
  EXPECT_EQ(blocks("occupancy(256, 0, 0)"), 8);  // eq. 2: warps
  EXPECT_EQ(blocks("occupancy(96, 0, 0)"), 16);
  EXPECT_EQ(blocks("occupancy(256, 32, 0)"), 8);  // eq. 4: 1024 registers a warp, 64 warps
  EXPECT_EQ(blocks("occupancy(256, 33, 0)"), 6);  // rounded to 1280 a warp: 51 warps
  EXPECT_EQ(blocks("occupancy(256, 255, 0)"), 1);
  EXPECT_EQ(blocks("occupancy(256, 0, 10000)"), 4);  // eq. 3: 10240 bytes each
  EXPECT_EQ(blocks("occupancy(128, 40, 6000)"), 8);
  EXPECT_EQ(blocks("occupancy(1024, 128, 0)"), 0);  // does not fit
  EXPECT_DOUBLE_EQ(Expression::parse("occupancy(256, 33, 0) * 256 / device.max_threads_per_multiprocessor")
                       .evaluate(kepler)
                       .as_real(),
                   0.75);  // eq. 5
  EXPECT_THAT(error_of([&] { Expression::parse("occupancy(64, 0, 0)").evaluate(Constants{}); }), HasSubstr("device."));
}

TEST(Value, ComparesAcrossKindsAsPython) {
  EXPECT_EQ(Value(1), Value(1.0));
  EXPECT_EQ(Value(true), Value(1));
  EXPECT_FALSE(Value("1") == Value(1));
  EXPECT_EQ(Value(1.0).to_string(), "1.0");
  EXPECT_EQ(Value(1e16).to_string(), "1e+16");
  EXPECT_EQ(Value(0.1).to_string(), "0.1");
  EXPECT_EQ(Value(true).to_string(), "True");
  EXPECT_EQ(Value("a").to_literal(), "'a'");
  EXPECT_THROW(Value("a").as_real(), Error);
  EXPECT_THROW(Value(1.5).as_integer(), Error);
}

}  // namespace
}  // namespace ergotune
