// Evaluates the parsed form with Python's rules. The space builder compiles expressions instead
// (space/expression/program.hpp), and uses this for expressions that it cannot type.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "space/expression/arithmetic.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune {
namespace {

using Kind = ExpressionNode::Kind;

[[noreturn]] void fault(std::string message) { throw EvaluationFault{std::move(message)}; }

[[noreturn]] void overflow() { fault("the integer result does not fit into 64 bits"); }

void need_number(const Value& value, std::string_view what) {
  if (value.is_string()) fault(fmt::format("{} needs a number, not the text {}", what, value.to_literal()));
}

Value whole(double x, std::string_view what) {
  if (!(x >= -0x1p63 && x < 0x1p63)) fault(fmt::format("{}({}) does not fit into 64 bits", what, x));
  return Value(static_cast<std::int64_t>(x));
}

Value checked_real(double result, bool finite_operands, std::string_view what) {
  if (finite_operands && !std::isfinite(result)) fault(fmt::format("the result of {} is too large", what));
  return Value(result);
}

Value power(const Value& a, const Value& b) {
  if (!a.is_real() && !b.is_real()) {
    const std::int64_t base = a.as_integer(), exponent = b.as_integer();
    if (exponent >= 0) {
      std::int64_t result = 0;
      if (!arithmetic::power(base, exponent, result)) overflow();
      return Value(result);
    }
  }
  const double base = a.as_real(), exponent = b.as_real();
  if (base == 0 && exponent < 0) fault("division by zero (0 to a negative power)");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && std::floor(exponent) != exponent)
    fault("a negative number to a fractional power is not real");
  return checked_real(std::pow(base, exponent), std::isfinite(base) && std::isfinite(exponent), "**");
}

Value to_integer(const Value& a) {
  if (a.is_string()) {
    std::string_view text = a.as_string();
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    std::int64_t result = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (code != std::errc{} || end != text.data() + text.size())
      fault(fmt::format("int() cannot read {}", a.to_literal()));
    return Value(result);
  }
  if (!a.is_real()) return Value(a.as_integer());
  return whole(std::trunc(a.as_real()), "int");
}

Value to_real(const Value& a) {
  if (!a.is_string()) return Value(a.as_real());
  std::string_view text = a.as_string();
  double result = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (code != std::errc{} || end != text.data() + text.size())
    fault(fmt::format("float() cannot read {}", a.to_literal()));
  return Value(result);
}

// Half to even, as Python's round().
Value round_value(std::span<const Value> arguments) {
  need_number(arguments[0], "round()");
  if (arguments.size() == 1) {
    if (!arguments[0].is_real()) return Value(arguments[0].as_integer());
    return whole(std::nearbyint(arguments[0].as_real()), "round");
  }
  need_number(arguments[1], "round()");
  if (arguments[1].is_real()) fault("round() needs a whole number of digits");
  const std::int64_t digits = arguments[1].as_integer();
  if (!arguments[0].is_real() && digits >= 0) return Value(arguments[0].as_integer());
  const double x = arguments[0].as_real();
  double rounded = x;
  if (std::isfinite(x) && digits < 300) {
    if (digits >= 0) {
      // correctly rounded decimal, as in CPython; independent of the application's locale
      const std::string decimal = fmt::format("{:.{}f}", x, digits);
      std::from_chars(decimal.data(), decimal.data() + decimal.size(), rounded);
    } else if (digits < -308) {
      rounded = 0;
    } else {
      const double scale = std::pow(10.0, static_cast<double>(-digits));
      rounded = std::nearbyint(x / scale) * scale;
    }
  }
  return arguments[0].is_real() ? Value(rounded) : whole(rounded, "round");
}

Value extreme(Function function, std::span<const Value> arguments) {
  const bool least = function == Function::min;
  const Value* best = &arguments[0];
  for (const auto& candidate : arguments.subspan(1))
    if (apply_comparison(least ? Relation::less : Relation::greater, candidate, *best)) best = &candidate;
  return *best;
}

std::vector<Value> evaluate_items(const ExpressionNode& node, const Scope& scope) {
  std::vector<Value> items;
  items.reserve(node.children.size());
  for (const auto& child : node.children) items.push_back(evaluate_tree(*child, scope));
  return items;
}

// The values that min(), max(), len() and "in" work on: a list's items, or the argument itself.
bool compare_step(Relation comparison, const Value& left, const ExpressionNode& right_node, const Scope& scope,
                  Value& right) {
  const bool membership = comparison == Relation::in || comparison == Relation::not_in;
  if (!membership) {
    right = evaluate_tree(right_node, scope);
    return apply_comparison(comparison, left, right);
  }
  bool found = false;
  if (right_node.kind == Kind::list) {
    for (const auto& item : evaluate_items(right_node, scope)) found = found || left == item;
  } else {
    right = evaluate_tree(right_node, scope);
    if (!left.is_string() || !right.is_string()) fault("\"in\" needs a list on its right, or a text in a text");
    found = right.as_string().find(left.as_string()) != std::string::npos;
  }
  return found == (comparison == Relation::in);
}

Value evaluate_call(const ExpressionNode& node, const Scope& scope) {
  const bool over_list = node.children.size() == 1 && node.children[0]->kind == Kind::list;
  const auto arguments = evaluate_items(over_list ? *node.children[0] : node, scope);
  if (node.function == Function::len) {
    if (over_list) return Value(static_cast<std::int64_t>(arguments.size()));
    if (!arguments[0].is_string()) fault("len() needs a list or a text");
    return Value(static_cast<std::int64_t>(arguments[0].as_string().size()));
  }
  if (node.function == Function::occupancy) return evaluate_occupancy(arguments[0], arguments[1], arguments[2], scope);
  if (!over_list && node.children.size() == 1 && (node.function == Function::min || node.function == Function::max))
    fault(fmt::format("{}() of one value needs a list", function_text(node.function)));
  if (arguments.empty()) fault(fmt::format("{}() of an empty list", function_text(node.function)));
  return apply_function(node.function, arguments);
}

}  // namespace

Value apply_unary(Operator op, const Value& a) {
  if (op == Operator::logical_not) return Value(!a.truthy());
  need_number(a, op == Operator::negate ? "-" : "+");
  if (a.is_real()) return Value(op == Operator::negate ? -a.as_real() : a.as_real());
  const std::int64_t x = a.as_integer();
  if (op == Operator::plus) return Value(x);
  if (x == std::numeric_limits<std::int64_t>::min()) overflow();
  return Value(-x);
}

Value apply_binary(Operator op, const Value& a, const Value& b) {
  if (op == Operator::add && a.is_string() && b.is_string()) return Value(a.as_string() + b.as_string());
  need_number(a, operator_text(op));
  need_number(b, operator_text(op));
  if (op == Operator::power) return power(a, b);
  if (a.is_real() || b.is_real()) {
    const double x = a.as_real(), y = b.as_real();
    switch (op) {
      case Operator::add:
        return Value(x + y);
      case Operator::subtract:
        return Value(x - y);
      case Operator::multiply:
        return Value(x * y);
      default:
        break;
    }
    if (y == 0) fault("division by zero");
    if (op == Operator::divide) return Value(x / y);
    return Value(op == Operator::modulo ? arithmetic::floor_modulo(x, y) : arithmetic::floor_divide(x, y));
  }
  const std::int64_t x = a.as_integer(), y = b.as_integer();
  std::int64_t result = 0;
  bool overflowed = false;
  switch (op) {
    case Operator::add:
      overflowed = __builtin_add_overflow(x, y, &result);
      break;
    case Operator::subtract:
      overflowed = __builtin_sub_overflow(x, y, &result);
      break;
    case Operator::multiply:
      overflowed = __builtin_mul_overflow(x, y, &result);
      break;
    default:
      if (y == 0) fault("division by zero");
      if (op == Operator::divide) return Value(arithmetic::true_divide(x, y));
      if (op == Operator::modulo) return Value(arithmetic::floor_modulo(x, y));
      if (x == std::numeric_limits<std::int64_t>::min() && y == -1) overflow();
      return Value(arithmetic::floor_divide(x, y));
  }
  if (overflowed) overflow();
  return Value(result);
}

bool apply_comparison(Relation comparison, const Value& a, const Value& b) {
  if (comparison == Relation::equal) return a == b;
  if (comparison == Relation::not_equal) return !(a == b);
  if (a.is_string() != b.is_string())
    fault(fmt::format("{} and {} have no order (a number and a text)", a.to_literal(), b.to_literal()));
  switch (comparison) {
    case Relation::less:
      return a < b;
    case Relation::greater:
      return b < a;
    // not !(b < a): a comparison with NaN is false
    case Relation::less_equal:
      return a < b || a == b;
    case Relation::greater_equal:
      return b < a || a == b;
    default:
      return false;
  }
}

Value apply_function(Function function, std::span<const Value> arguments) {
  const Value& a = arguments[0];
  switch (function) {
    case Function::min:
    case Function::max:
      return extreme(function, arguments);
    case Function::to_int:
      return to_integer(a);
    case Function::to_float:
      return to_real(a);
    case Function::to_bool:
      return Value(a.truthy());
    case Function::round:
      return round_value(arguments);
    default:
      break;
  }
  for (const auto& argument : arguments) need_number(argument, std::string(function_text(function)) + "()");
  const double x = a.as_real();
  switch (function) {
    case Function::abs:
      return a.is_real()          ? Value(std::fabs(x))
             : a.as_integer() < 0 ? apply_unary(Operator::negate, a)
                                  : Value(a.as_integer());
    case Function::ceil:
      return a.is_real() ? whole(std::ceil(x), "ceil") : Value(a.as_integer());
    case Function::floor:
      return a.is_real() ? whole(std::floor(x), "floor") : Value(a.as_integer());
    case Function::sqrt:
      if (x < 0) fault("sqrt() of a negative number");
      return Value(std::sqrt(x));
    case Function::log:
    case Function::log2: {
      if (x <= 0) fault(fmt::format("{}() of a number that is not positive", function_text(function)));
      if (function == Function::log2) return Value(std::log2(x));
      if (arguments.size() == 1) return Value(std::log(x));
      const double base = arguments[1].as_real();
      if (base <= 0) fault("log() to a base that is not positive");
      if (base == 1) fault("division by zero (log() to base 1)");
      return Value(std::log(x) / std::log(base));
    }
    case Function::exp:
      return checked_real(std::exp(x), std::isfinite(x), "exp()");
    default:
      break;
  }
  fault(fmt::format("{}() cannot be used here", function_text(function)));
}

Value evaluate_tree(const ExpressionNode& node, const Scope& scope) {
  switch (node.kind) {
    case Kind::constant:
      return node.value;
    case Kind::name: {
      const Value* value = scope(node.text);
      if (value == nullptr) fault(fmt::format("unknown name \"{}\"", node.text));
      return *value;
    }
    case Kind::unary:
      return apply_unary(node.op, evaluate_tree(*node.children[0], scope));
    case Kind::binary: {
      const Value left = evaluate_tree(*node.children[0], scope);
      return apply_binary(node.op, left, evaluate_tree(*node.children[1], scope));
    }
    case Kind::conjunction:
    case Kind::disjunction: {  // returns the deciding operand, as Python does
      const bool stop = node.kind == Kind::disjunction;
      for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
        Value value = evaluate_tree(*node.children[i], scope);
        if (value.truthy() == stop) return value;
      }
      return evaluate_tree(*node.children.back(), scope);
    }
    case Kind::comparison: {
      Value left = evaluate_tree(*node.children[0], scope);
      for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
        Value right;
        if (!compare_step(node.comparisons[i], left, *node.children[i + 1], scope, right)) return Value(false);
        left = std::move(right);
      }
      return Value(true);
    }
    case Kind::conditional:
      return evaluate_tree(*node.children[evaluate_tree(*node.children[1], scope).truthy() ? 0 : 2], scope);
    case Kind::call:
      return evaluate_call(node, scope);
    case Kind::list:
      fault("a list is not a value by itself");
  }
  return {};
}

}  // namespace ergotune
