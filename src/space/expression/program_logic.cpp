// Comparisons and logic of the program: folds constants, and decides comparisons by intervals.
#include <algorithm>
#include <cmath>
#include <compare>

#include "space/expression/program.hpp"

namespace ergotune::program {

OperationId Program::boolean(Code code, OperationId a, OperationId b) {
  Operation operation;
  operation.code = code;
  operation.boolean = true;
  operation.high = 1;
  operation.a = a;
  operation.b = b;
  operation.real_operands = at(a).real;
  return intern(operation);
}

OperationId Program::compare(Code code, OperationId a, OperationId b) {
  if (at(a).text != at(b).text) {
    if (code == Code::equal) return integer(0);
    if (code == Code::not_equal) return integer(1);
    throw Untyped{};
  }
  if (!at(a).text) numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (is_constant(a) && is_constant(b)) {
    const auto order = x.real ? as_real(x) <=> as_real(y) : std::partial_ordering(x.word <=> y.word);
    switch (code) {
      case Code::less:
        return integer(order < 0);
      case Code::less_equal:
        return integer(order <= 0);
      case Code::equal:
        return integer(order == 0);
      default:
        return integer(order != 0);
    }
  }
  const bool apart = x.high < y.low || y.high < x.low;
  const bool same = a == b || (x.low == x.high && y.low == y.high && x.low == y.low && std::fabs(x.low) < kExact);
  switch (code) {
    case Code::less:
      if (x.high < y.low && std::fabs(x.high) < kExact) return integer(1);
      if (same || (x.low >= y.high && std::fabs(x.low) < kExact)) return integer(0);
      break;
    case Code::less_equal:
      if (same || (x.high <= y.low && std::fabs(x.high) < kExact)) return integer(1);
      if (x.low > y.high && std::fabs(x.low) < kExact) return integer(0);
      break;
    case Code::equal:
      if (same) return integer(1);
      if (apart) return integer(0);
      break;
    default:
      if (same) return integer(0);
      if (apart) return integer(1);
  }
  if ((code == Code::equal || code == Code::not_equal) && std::pair(x.level, a) > std::pair(y.level, b))
    std::swap(a, b);
  return boolean(code, a, b);
}

OperationId Program::truth(OperationId a) {
  const Operation x = at(a);
  if (x.text) throw Untyped{};
  if (x.boolean) return a;
  return compare(Code::not_equal, a, x.real ? real(0) : integer(0));
}

OperationId Program::logical_not(OperationId a) {
  const Operation x = at(a);
  if (is_constant(a)) return integer(x.word == 0);
  switch (x.code) {
    case Code::logical_not:
      return x.a;
    case Code::equal:
      return boolean(Code::not_equal, x.a, x.b);
    case Code::not_equal:
      return boolean(Code::equal, x.a, x.b);
    case Code::less:
    case Code::less_equal:
      // NaN cannot occur: intervals are finite
      return boolean(x.code == Code::less ? Code::less_equal : Code::less, x.b, x.a);
    default:
      return boolean(Code::logical_not, a, kNone);
  }
}

OperationId Program::logical_and(OperationId a, OperationId b) {
  if (is_false(a) || is_false(b)) return integer(0);
  if (is_true(a) || a == b) return b;
  if (is_true(b)) return a;
  if (std::pair(at(a).level, a) > std::pair(at(b).level, b)) std::swap(a, b);
  return boolean(Code::logical_and, a, b);
}

OperationId Program::logical_or(OperationId a, OperationId b) {
  if (is_true(a) || is_true(b)) return integer(1);
  if (is_false(a) || a == b) return b;
  if (is_false(b)) return a;
  if (std::pair(at(a).level, a) > std::pair(at(b).level, b)) std::swap(a, b);
  return boolean(Code::logical_or, a, b);
}

OperationId Program::select(OperationId condition, OperationId a, OperationId b) {
  if (is_constant(condition)) return at(condition).word != 0 ? a : b;
  if (a == b) return a;
  if (at(a).text != at(b).text) throw Untyped{};
  if (!at(a).text) numbers(a, b);
  const Operation x = at(a), y = at(b);
  Operation operation;
  operation.code = Code::select;
  operation.real = x.real;
  operation.text = x.text;
  operation.boolean = x.boolean && y.boolean;
  operation.a = condition;
  operation.b = a;
  operation.c = b;
  operation.low = std::min(x.low, y.low);
  operation.high = std::max(x.high, y.high);
  return intern(operation);
}

}  // namespace ergotune::program
