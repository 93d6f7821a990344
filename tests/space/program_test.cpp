// Restrictions as the builder compiles them: each operation knows an interval that its results do not leave,
// as tight as arithmetic allows; what a condition says of a prefix of the parameters is all that can be said.
#include "space/program.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ergotune/space/expression.hpp"
#include "parameters.hpp"
#include "space/columns.hpp"

namespace ergotune {
namespace {

using test::listed;
using namespace program;

/// Whole, negative, real, both signs, truth and text; "one" is no variable.
const std::vector<Parameter> kParameters{listed("a", {1, 2, 3, 8}),   listed("b", {-3, -1, 2, 5}),
                                         listed("x", {0.25, 1.5, 3}), listed("y", {-2.5, -0.5}),
                                         listed("t", {false, true}),  listed("one", {1}),
                                         listed("s", {"abc", "b"}),   listed("n", {4, 5, 12})};

class Compilation {
 public:
  explicit Compilation(const std::string& text)
      : text_(text), expression_(Expression::parse(text)), program_(kParameters) {
    program_.set_texts({"abc", "b", "c"});
    names_.parameter = [](std::string_view name) -> std::optional<std::uint32_t> {
      for (std::uint32_t p = 0; p < kParameters.size(); ++p)
        if (kParameters[p].name == name) return p;
      return std::nullopt;
    };
    names_.constant = [](std::string_view) { return nullptr; };
    id = compile_value(program_, expression_.root(), names_).value;
  }

  const Operation& result() const { return program_.at(id); }
  Program& program() { return program_; }

  /// What an operation gives for the parameters at these positions.
  double run(OperationId of, const std::vector<std::size_t>& positions) {
    std::vector<OperationId> all;
    for (OperationId i = 0; i < static_cast<OperationId>(program_.size()); ++i) all.push_back(i);
    Columns columns(program_, {}, all);
    for (const OperationId i : all)
      if (program_.at(i).code == Code::variable)
        *columns.column(i) = value_words(program_, i)[positions[static_cast<std::size_t>(program_.at(i).a)]];
    columns.evaluate(1);
    const std::int64_t word = *columns.column(of);
    return program_.at(of).real ? std::bit_cast<double>(word) : static_cast<double>(word);
  }

  /// What the evaluator says; texts by their rank.
  double truth(const std::vector<std::size_t>& positions) const {
    const Value value = expression_.evaluate([&](std::string_view name) -> const Value* {
      const auto p = *names_.parameter(name);
      return &kParameters[p].values[positions[p]];
    });
    return value.is_string() ? (value.as_string() == "abc" ? 0 : 1) : value.as_real();
  }

  /// Calls `each` for all combinations of the parameters from `first` on, with the others as they are.
  template <class F>
  void combinations(std::vector<std::size_t>& positions, std::size_t first, F each) const {
    if (first == kParameters.size()) return each();
    const bool used = text_.find(kParameters[first].name) != std::string::npos;
    for (std::size_t v = 0; v < (used ? kParameters[first].values.size() : 1); ++v) {
      positions[first] = v;
      combinations(positions, first + 1, each);
    }
    positions[first] = 0;
  }

  OperationId id = kNone;

 private:
  std::string text_;
  Expression expression_;
  Program program_;
  NameTable names_;
};

// Each is compiled, gives what the evaluator gives, and its interval is exactly that of its results.
constexpr const char* kTight[] = {"a",
                                  "b",
                                  "x",
                                  "y",
                                  "t",
                                  "one",
                                  "s",
                                  "-b",
                                  "-y",
                                  "+x",
                                  "a + b",
                                  "a - b",
                                  "b - a",
                                  "x + y",
                                  "x - y",
                                  "a + x",
                                  "a * n",
                                  "a * b",
                                  "x * y",
                                  "a * x",
                                  "b * x",
                                  "min(a, n)",
                                  "max(a, n)",
                                  "min(x, y + 3)",
                                  "max(x, y + 3)",
                                  "min(a, b)",
                                  "max(b, n - 6)",
                                  "abs(b - 6)",
                                  "abs(y)",
                                  "x / (n - 3)",
                                  "y / a",
                                  "a / n",
                                  "x / (n * 0.5)",
                                  "b / (x + 1)",
                                  "floor(x)",
                                  "sqrt(a)",
                                  "sqrt(x)",
                                  "a if t else n",
                                  "b if t else x",
                                  "min(a, 2) + max(b, 3)",
                                  "a * 1",
                                  "1 * a",
                                  "a + 0",
                                  "0 + a",
                                  "a - 0",
                                  "a // 1",
                                  "a % 1",
                                  "0 * a",
                                  "a * 0",
                                  "min(a, a)",
                                  "max(x, x)",
                                  "a if t else a",
                                  "min(a, 0)",
                                  "min(0, a)",
                                  "min(a, 9)",
                                  "max(a, 9)",
                                  "max(a, 1)",
                                  "max(1, a)",
                                  "min(9, a)",
                                  "max(9, a)",
                                  "a - n - b",
                                  "float(a)",
                                  "bool(t)",
                                  "n // 1",
                                  "2 * a - 3 * n",
                                  "not t",
                                  "t and a < 3",
                                  "t or a < 3",
                                  "a * 0.5 - 1"};

// Likewise, but the interval may be wider by this: quotients and logarithms are rounded outwards.
constexpr std::pair<const char*, double> kLoose[] = {
    {"a // n", 2},        {"n // a", 2},        {"x // 0.5", 2},
    {"y // x", 2},        {"b // 2", 2},        {"a ** 2", 1 + 1e-6},
    {"2 ** a", 2 + 1e-6}, {"a ** 1", 1 + 1e-6}, {"b * b", 16},
    {"ceil(x)", 1},       {"ceil(y)", 1},       {"floor(y)", 1},
    {"b ** 2", 34},       {"x ** 2", 1e-6},     {"x ** (y + 0.0)", 1e-6},
    {"log(a)", 1e-6},     {"log2(n)", 1e-6},    {"log(x)", 1e-6},
    {"exp(y)", 1e-6},     {"exp(x)", 1e-6},     {"log2(x)", 1e-6},
    {"a % 3", 1},         {"b % 5", 2},         {"b % -4", 2},
    {"n % a", 6},         {"round(x)", 2},      {"int(x)", 1},
    {"int(y)", 1},        {"round(y)", 1},      {"x % 2", 1.3},
    {"y % x", 2},         {"abs(b)", 1},        {"n // b", 14},
    {"b // -2", 8},       {"a / (b + 0)", 5},   {"x // y", 13},
    {"n % b", 5},         {"y % -0.75", 0.5},   {"x ** -1", 1e-6},
    {"b // n", 2},        {"(a % 3) or t", 1}, {"(a % 3) and t", 2},
    {"t or (a % 3)", 1},  {"(a - 1) % 2 or n", 12}};

void expect_interval(const char* text, double wider) {
  Compilation one(text);
  std::vector<std::size_t> positions(kParameters.size());
  double low = INFINITY, high = -INFINITY;
  one.combinations(positions, 0, [&] {
    const double truth = one.truth(positions);
    ASSERT_EQ(one.run(one.id, positions), truth) << text;
    low = std::min(low, truth);
    high = std::max(high, truth);
  });
  const Operation& result = one.result();
  EXPECT_LE(result.low, low) << text;
  EXPECT_GE(result.high, high) << text;
  EXPECT_LE((low - result.low) + (result.high - high), wider)
      << text << ": " << result.low << " to " << result.high;
}

TEST(Program, IntervalsHoldEveryResultAndLittleElse) {
  for (const char* text : kTight) expect_interval(text, 0);
  for (const auto& [text, wider] : kLoose) expect_interval(text, wider);
}

TEST(Program, WhatIsDecidedIsAConstantAndWhatIsEqualOneOperation) {
  const std::pair<const char*, double> constants[] = {{"1 + 2", 3},
                                                      {"7 - 9", -2},
                                                      {"2.5 + 1", 3.5},
                                                      {"2.5 - 1", 1.5},
                                                      {"6 * 7", 42},
                                                      {"0.5 * 3", 1.5},
                                                      {"7 // 2", 3},
                                                      {"-7 // 2", -4},
                                                      {"7.5 // 2", 3},
                                                      {"7 % 4", 3},
                                                      {"-7 % 4", 1},
                                                      {"7.5 % 2", 1.5},
                                                      {"7 / 2", 3.5},
                                                      {"1.5 / 2", 0.75},
                                                      {"3 ** 4", 81},
                                                      {"2.0 ** 3", 8},
                                                      {"min(3, 2)", 2},
                                                      {"max(3, 2)", 3},
                                                      {"abs(-4)", 4},
                                                      {"abs(0)", 0},
                                                      {"ceil(1.2)", 2},
                                                      {"floor(-1.2)", -2},
                                                      {"round(2.5)", 2},
                                                      {"int(-2.7)", -2},
                                                      {"sqrt(9)", 3},
                                                      {"sqrt(0)", 0},
                                                      {"log(1)", 0},
                                                      {"log2(8)", 3},
                                                      {"exp(0)", 1},
                                                      {"one + 1", 2},
                                                      {"a < 9", 1},
                                                      {"a < 1", 0},
                                                      {"a <= 8", 1},
                                                      {"a <= 0", 0},
                                                      {"a > 0", 1},
                                                      {"a >= 9", 0},
                                                      {"a == 9", 0},
                                                      {"a != 9", 1},
                                                      {"a == a", 1},
                                                      {"a != a", 0},
                                                      {"a < a", 0},
                                                      {"a <= a", 1},
                                                      {"x < 0.25", 0},
                                                      {"x <= 3", 1},
                                                      {"s == 1", 0},
                                                      {"s != 1", 1},
                                                      {"a < 9 and b < 9", 1},
                                                      {"a < 0 and t", 0},
                                                      {"t and a < 0", 0},
                                                      {"a < 9 or t", 1},
                                                      {"t or a < 9", 1},
                                                      {"not 0", 1},
                                                      {"not 3", 0},
                                                      {"1 if a < 9 else b", 1},
                                                      {"b if a < 0 else 7", 7},
                                                      {"n in (1, 2)", 0},
                                                      {"n not in (1, 2)", 1},
                                                      {"1 < 2", 1},
                                                      {"2 < 2", 0},
                                                      {"2 <= 2", 1},
                                                      {"3 <= 2", 0},
                                                      {"2 == 2", 1},
                                                      {"2 != 2", 0},
                                                      {"1.5 < 2", 1},
                                                      {"b <= 5", 1},
                                                      {"5 < b", 0},
                                                      {"n < a - 4", 0},
                                                      {"a + 4 <= n", 0.5},
                                                      {"t - t", 0.5},
                                                      // at the ends of an interval
                                                      {"min(n, 4)", 4},
                                                      {"min(4, n)", 4},
                                                      {"max(a, 8)", 8},
                                                      {"max(8, a)", 8},
                                                      {"a < 8", 0.5},
                                                      {"8 <= a", 0.5},
                                                      {"a <= 1", 0.5},
                                                      {"1 < a", 0.5},
                                                      {"a == 8", 0.5},
                                                      {"a != 1", 0.5},
                                                      {"1 == a", 0.5},
                                                      {"8 < a", 0},
                                                      {"a < 1", 0},
                                                      {"1 <= a", 1},
                                                      {"a <= 8", 1},
                                                      {"0 * n + 3", 3},
                                                      {"a % 1", 0},
                                                      {"one == 1", 1},
                                                      {"one < 1", 0},
                                                      {"one <= 1", 1},
                                                      {"a == 2 and a == 9", 0},
                                                      {"a < 9 if t else 1", 1},
                                                      {"not (a < 9)", 0},
                                                      {"-one", -1},
                                                      {"-(2.5)", -2.5},
                                                      {"abs(-2.5)", 2.5},
                                                      {"2.5 // 1.0", 2},
                                                      {"float(one)", 1},
                                                      {"0 ** 0", 1},
                                                      {"sqrt(2.25)", 1.5}};
  for (const auto& [text, value] : constants) {
    Compilation one(text);
    if (value == 0.5) {  // not decided by intervals
      EXPECT_NE(one.result().code, Code::constant) << text;
      continue;
    }
    ASSERT_EQ(one.result().code, Code::constant) << text;
    EXPECT_EQ(one.result().low, value) << text;
    EXPECT_EQ(one.run(one.id, std::vector<std::size_t>(kParameters.size())), value) << text;
    EXPECT_EQ(one.result().level, -1) << text;
  }
  const std::pair<const char*, const char*> twins[] = {{"a + n", "n + a"},
                                                       {"a * n", "n * a"},
                                                       {"a == n", "n == a"},
                                                       {"a != n", "n != a"},
                                                       {"t and a < n", "a < n and t"},
                                                       {"t or a < n", "a < n or t"},
                                                       {"not (a < n)", "n <= a"},
                                                       {"not (a <= n)", "n < a"},
                                                       {"not (a == n)", "a != n"},
                                                       {"not (a != n)", "n == a"},
                                                       {"not not t", "t"},
                                                       {"a * 1", "a"},
                                                       {"0 + a", "a"},
                                                       {"a - 0", "a"},
                                                       {"a // 1", "a"},
                                                       {"t and t", "t"},
                                                       {"t or t", "t"},
                                                       {"t and 1 < 2", "t"},
                                                       {"1 < 2 and t", "t"},
                                                       {"t or 2 < 1", "t"},
                                                       {"2 < 1 or t", "t"},
                                                       {"ceil(a)", "a"},
                                                       {"abs(a)", "a"},
                                                       {"min(a, 9)", "a"},
                                                       {"max(0, a)", "a"},
                                                       {"min(a, 8)", "a"},
                                                       {"min(8, a)", "a"},
                                                       {"max(a, 1)", "a"},
                                                       {"max(1, a)", "a"},
                                                       {"max(x, 0.25)", "x"},
                                                       {"min(3.0, x)", "x"},
                                                       {"abs(a - 1)", "a - 1"},
                                                       {"a + 0", "a"},
                                                       {"1 * a", "a"},
                                                       {"a if t else a", "a"},
                                                       {"floor(n)", "n"},
                                                       {"+a", "a"},
                                                       {"a + n + b", "b + a + n"},
                                                       {"a * (n * b)", "b * a * n"},
                                                       {"bool(a)", "a != 0"},
                                                       {"(a < n) == 1", "(a < n) == 1"},
                                                       {"bool(t)", "t"}};
  for (const auto& [left, right] : twins) {
    Compilation both(fmt::format("{} if s == 'abc' else {}", left, right));
    EXPECT_NE(both.result().code, Code::select) << left << " and " << right;
  }
  for (const auto& [left, right] : {std::pair{"a + n", "a - n"},
                                    {"a < n", "a <= n"},
                                    {"a < n", "n < a"},
                                    {"a - n", "n - a"},
                                    {"a + 1", "a + 2"},
                                    {"x + 1", "a + 1"}})
    EXPECT_EQ(Compilation(fmt::format("{} if s == 'abc' else {}", left, right)).result().code, Code::select)
        << left << " and " << right;
}

TEST(Program, WhatMightNotFitOrHasNoKindIsLeftToTheEvaluator) {
  for (const char* text : {"a * 1000000000000000000",
                           "n + 4611686018427400000",
                           "n - 4611686018427387904 * 2",
                           "2 ** (n * 6)",
                           "x * 1e300",
                           "1e300 / x * 9",
                           "x / y ** 0.5",
                           "log(b)",
                           "log(b + 3)",
                           "sqrt(b)",
                           "exp(x * 300)",
                           "x / (y + 1.5)",
                           "x // (y + 1.5)",
                           "a ** b",
                           "y ** 2",
                           "-s",
                           "s + 1",
                           "s < 1",
                           "abs(s)",
                           "len(s)",
                           "log(x, 2)",
                           "round(x, 1)",
                           "a if t else s",
                           "float(9007199254740995 + a)",
                           "x + (9007199254740993 + a)",
                           "nobody",
                           "min(a)",
                           "t and s"})
    EXPECT_THROW(Compilation{text}, Untyped) << text;
  for (const char* text : {"a * 100000000000000000", "n + 4611686018427387000", "x * 3e299", "exp(x * 199)",
                           "2 ** (n * 5)", "log(b + 4)", "sqrt(b + 3)", "x / (y + 3)"})
    EXPECT_NO_THROW(Compilation{text}) << text;
}

// What is said of a prefix holds exactly where some continuation meets the condition.
TEST(Program, APrefixIsToldAllThatCanBeSaid) {
  constexpr const char* kConditions[] = {"a + n <= 9",
                                         "a + n < 9",
                                         "n - a >= 8",
                                         "n - a > 8",
                                         "a * n <= 24",
                                         "a * n > 30",
                                         "a * n >= 32",
                                         "n // a >= 4",
                                         "n // a < 2",
                                         "b + n <= 6 and a < 3",
                                         "a < 2 or n < 5",
                                         "not (a + n <= 9)",
                                         "not (a < 3 or n < 5)",
                                         "not (a < 3 and n < 5)",
                                         "n % a == 0 and a > 1",
                                         "min(a, n) >= 3",
                                         "max(a, n) <= 4",
                                         "-n + a > 0",
                                         "-(n + a) < -18",
                                         "a + b * 0 <= 2",
                                         "b + n <= 2",
                                         "b - n >= 0",
                                         "b + 2 == n",
                                         "a * 2 == n",
                                         "a - 1 >= n",
                                         "a != 3 and n > 2",
                                         "n // (a + 1) >= 6",
                                         "a * (n - 4) <= 0 and a > 2",
                                         "(a + b) * n <= 8 and a + b >= 0",
                                         "(b * 10) // n <= -7",
                                         "(b * 10) // n >= -3",
                                         "(b * 10) // (n - 8) <= -7",
                                         "(30) // (n - 8) >= 7",
                                         "(b * n) >= 20",
                                         "(b * n) <= -30",
                                         "(0 - b * n) > 10",
                                         "(b - 6) * (n - 8) >= 30",
                                         "(max(-n, b)) > 3",
                                         "(min(b, n - 8)) < -3",
                                         "(x * n) > 20",
                                         "(x // n) >= 0.5",
                                         "(x + n) < 5",
                                         "(n // x) > 20",
                                         "(y + n) == 3.5",
                                         "(y + a) == 0.5",
                                         "(a - y) == 3.5",
                                         "(s == 'b') or n > 5",
                                         "(n if t else a) >= 8",
                                         "(abs(b - n)) > 8"};
  for (const char* text : kConditions) {
    Compilation one(text);
    // comparisons of what rises or falls lose nothing with one parameter open
    const bool exact = std::string(text).find_first_of("%!") == std::string::npos &&
                       std::string(text).find("==") == std::string::npos && text[0] != '(';
    for (std::int32_t level = 0; level < 7; ++level) {
      const OperationId said = relax(one.program(), one.program().truth(one.id), level);
      EXPECT_LE(one.program().at(said).level, level) << text;
      std::vector<std::size_t> positions(kParameters.size());
      // the last parameter is the one that is open: with it the condition is what it is
      one.combinations(positions, 0, [&] {
        if (positions.back() != 0) return;
        bool some = false;
        auto open = positions;
        one.combinations(open, static_cast<std::size_t>(level) + 1,
                         [&] { some = some || one.truth(open) != 0; });
        const bool told = one.run(said, positions) != 0;
        EXPECT_TRUE(told || !some) << text << " after " << level;
        EXPECT_TRUE(some || !told || !exact || level != 6) << text << " after " << level;
      });
    }
  }
}

TEST(Program, DivisorsAreKnownBeforeTheRestOfAProduct) {
  for (const auto& [text, level, position, told] : {std::tuple{"n * 2 % (a * one) == 0", 6, 0, true},
                                                    {"a % (2 * n) == 0", 6, 1, true},
                                                    {"a % (2 * n) == 0", 6, 0, false},
                                                    {"a % (3 * n) == 0", 6, 1, false},
                                                    {"a % (3 * n) == 0", 6, 2, true},
                                                    {"2 * n == a", 6, 3, true},
                                                    {"2 * n == a", 6, 2, false}}) {
    Compilation one(text);
    std::vector<std::size_t> positions(kParameters.size());
    positions[0] = static_cast<std::size_t>(position);
    EXPECT_EQ(one.run(relax(one.program(), one.id, level), positions) != 0, told)
        << text << " at " << position;
  }
}

TEST(Program, FallingConditionsStayFalse) {
  for (const auto& [text, falls] : {std::pair{"a + n < 9", true},
                                    {"a * n <= 9", true},
                                    {"n > a", false},
                                    {"n < a", true},
                                    {"a - n < 0", false},
                                    {"a - n > 0", true},
                                    {"-n > -5", true},
                                    {"b * n < 9", false},
                                    {"n // a < 3", true},
                                    {"a // n < 3", false},
                                    {"n == 4", false},
                                    {"n < 9 and a < 3", true},
                                    {"n < 9 or a * n < 20", true},
                                    {"n < 9 and n > 4", false},
                                    {"min(n, 6) < a", true},
                                    {"n + -n < 3", false},
                                    {"sqrt(n) < a", true},
                                    {"n * 0.5 < x", true},
                                    {"n % 3 < 1", false},
                                    {"x / n < 1", false},
                                    {"n / x < 9", true},
                                    {"n / y < 9", false},
                                    {"max(n, a) <= 5", true},
                                    {"5 <= n", false}}) {
    Compilation one(text);
    EXPECT_EQ(falls_with(one.program(), one.id, 7), falls) << text;
  }
}

TEST(Program, AnOperationKnowsItsParameters) {
  using Numbers = std::vector<std::uint32_t>;
  Compilation one("a * n + b if t else a + 1");
  EXPECT_EQ(one.program().variables_of(one.id), (Numbers{0, 1, 4, 7}));
  EXPECT_EQ(one.program().variables_of(one.id), (Numbers{0, 1, 4, 7})) << "asked again";
  EXPECT_EQ(one.result().level, 7);
  Compilation constant("1 + 2");
  EXPECT_EQ(constant.program().variables_of(constant.id), Numbers{});
}

}  // namespace
}  // namespace ergotune
