// Restrictions at the edges of what their numbers can be: a bound that is met, just missed, or not exact as a
// real; what is decided there is what the evaluator decides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "brute_force.hpp"
#include "ergotune/error.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

using test::counted;
using test::listed;

constexpr const char* kOrders[] = {"<", "<=", ">", ">=", "==", "!="};

void expect_as_evaluated(const std::vector<Parameter>& parameters, const std::vector<std::string>& texts) {
  std::vector<Restriction> restrictions(texts.size());
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    restrictions[i].expression = Expression::parse(texts[i]);
    all += texts[i] + "; ";
  }
  EXPECT_TRUE(test::all_of(SearchSpace::build(parameters, restrictions)) == test::brute_force(parameters, restrictions))
      << all << "first value " << parameters[0].values[0].to_literal();
}

TEST(Edges, IntegersBeyondTheExactRealsAreStillCompared) {
  constexpr std::int64_t kEdge = 9007199254740992;  // 2^53: the next integer is no double
  for (const std::int64_t sign : {1, -1}) {
    const auto near = [&](const char* name, const std::vector<std::int64_t>& offsets) {
      Parameter parameter;
      parameter.name = name;
      for (const std::int64_t offset : offsets) parameter.values.emplace_back(sign * (kEdge + offset));
      return parameter;
    };
    for (const auto& offsets :
         std::vector<std::vector<std::int64_t>>{{0, 1}, {1, 0}, {-1, 0, 1, 2}, {-1, 0}, {-2, -1}, {3, 4}}) {
      const std::vector<Parameter> parameters{near("v", offsets), near("w", {0, 1}), counted("k", 3)};
      for (const char* order : kOrders) {
        for (const std::int64_t bound : {kEdge - 1, kEdge, kEdge + 1}) {
          expect_as_evaluated(parameters, {fmt::format("v {} {}", order, sign * bound)});
          expect_as_evaluated(parameters, {fmt::format("{} {} v", sign * bound, order)});
        }
        expect_as_evaluated(parameters, {fmt::format("v {} w", order)});
        expect_as_evaluated(parameters, {fmt::format("v + k {} w", order)});
        expect_as_evaluated(parameters, {fmt::format("v - w {} k", order)});
        expect_as_evaluated(parameters, {fmt::format("v {} w + 0.0", order)});
      }
    }
  }
}

TEST(Edges, AnOperandThatDecidesIsItsValueAndNoTruth) {
  for (const Parameter& p :
       {counted("p", 2), counted("p", 3), listed("p", {1, 2}), listed("p", {-1, 0, 1}), listed("p", {-1, 0}),
        listed("p", {0, 0.5, 1.0}), listed("p", {false, true}), listed("p", {2}), listed("p", {0})})
    for (const char* text :
         {"(p or 5) == 2", "(p or 5) == 1", "(p and 5) == 5", "(p and q) == q", "(p or q) == p", "not p", "p and q",
          "p or q", "not (p and q)", "(p and q) + 1 < 3", "(not p) + (p or q) == 1", "(p if p else q) == 2",
          "bool(p) == p", "not not p == p", "(p or q) > 1", "p"})
      expect_as_evaluated({p, counted("q", 3)}, {text});
}

/// What an expression gives over all combinations, without repetition, least first; empty where it fails for some.
std::vector<Value> results_of(const std::string& text, const std::vector<Parameter>& parameters) {
  const Expression expression = Expression::parse(text);
  std::vector<Value> results;
  try {
    for (const Value& v : parameters[0].values)
      for (const Value& w : parameters[1].values) results.push_back(expression.evaluate(Constants{{"v", v}, {"w", w}}));
  } catch (const UserError&) {
    return {};
  }
  std::sort(results.begin(), results.end());
  results.erase(std::unique(results.begin(), results.end()), results.end());
  return results;
}

TEST(Edges, WhatAnExpressionCanBeAtLeastAndAtMostIsAllowed) {
  const std::pair<Parameter, Parameter> pairs[] = {{listed("v", {-7, -2, 3, 8}), listed("w", {1, 2, 5})},
                                                   {listed("v", {1, 4, 6}), listed("w", {-3, -1})},
                                                   {listed("v", {-2.5, -0.5, 1.25, 3.0}), listed("w", {0.5, 2.0})},
                                                   {listed("v", {0.25, 1.0, 2.5}), listed("w", {-1.5, -1.0})},
                                                   {listed("v", {0, 1, 9}), listed("w", {2})}};
  for (const auto& [v, w] : pairs) {
    const std::vector<Parameter> parameters{v, w};
    for (const char* text : {"v + w",
                             "v - w",
                             "w - v",
                             "v * w",
                             "v / w",
                             "v // w",
                             "v % w",
                             "v ** 2",
                             "2 ** v",
                             "w ** v",
                             "abs(v)",
                             "-v",
                             "min(v, w)",
                             "max(v, w)",
                             "round(v)",
                             "ceil(v)",
                             "floor(v)",
                             "int(v)",
                             "sqrt(v)",
                             "log(v)",
                             "log2(v)",
                             "exp(w)",
                             "v * v - w",
                             "v if w > 1 else w",
                             "(v + w) // 2 * w",
                             "abs(v - w) % 3",
                             "v // w % 2",
                             "v * 2 + w * 3"}) {
      const std::vector<Value> results = results_of(text, parameters);
      if (results.empty()) continue;
      for (const Value& bound : {results.front(), results[results.size() / 2], results.back()})
        for (const char* order : kOrders)
          expect_as_evaluated(parameters, {fmt::format("{} {} {}", text, order, bound.to_literal())});
    }
  }
}

TEST(Edges, ADivisorThatMayBeZeroIsLookedAtOnlyWhereItIsNot) {
  const std::vector<Parameter> parameters{listed("v", {-4, 0, 6}), listed("w", {-2, 0, 3}),
                                          listed("x", {-0.5, 0.0, 2.0})};
  for (const char* text : {"v // w >= 2", "v % w == 0", "v / w < 0", "v // w <= -2", "v % w > 0", "w % v == 0"})
    for (const char* guard : {"w != 0", "w > 0", "w < 0"})
      expect_as_evaluated(parameters, {fmt::format("v != 0 and {} and {}", guard, text)});
  for (const char* text : {"v / x > 0", "v // x >= 2", "v % x == 0"})
    expect_as_evaluated(parameters, {fmt::format("x != 0 and {}", text)});
  for (const char* text : {"v // w >= 2", "v / x > 0"})
    EXPECT_THROW(expect_as_evaluated(parameters, {text}), UserError) << text;
}

}  // namespace
}  // namespace ergotune
