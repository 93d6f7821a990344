// Operations of the program: folds constants and bounds results by intervals, by which comparisons are decided.
#include <algorithm>
#include <cmath>
#include <compare>
#include <tuple>

#include "space/expression/arithmetic.hpp"
#include "space/expression/program.hpp"

namespace ergotune::program {

OperationId Program::to_real(OperationId a) {
  const Operation operand = at(a);
  if (operand.real) return a;
  if (operand.text || std::max(std::fabs(operand.low), std::fabs(operand.high)) > kExact) throw Untyped{};
  if (is_constant(a)) return real(as_real(operand));
  return make(Code::to_real, true, a, kNone, operand.low, operand.high);
}

// Converts both operands to the same type of number.
void Program::numbers(OperationId& a, OperationId& b) {
  if (at(a).text || at(b).text) throw Untyped{};
  if (at(a).real == at(b).real) return;
  a = to_real(a);
  b = to_real(b);
}

OperationId Program::add(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (!x.real) {
    if (is_constant(a) && is_constant(b)) {
      check(false, x.low + y.low, x.high + y.high);
      return integer(x.word + y.word);
    }
    if (is_false(a)) return b;
    if (is_false(b)) return a;
    if (std::pair(x.level, a) > std::pair(y.level, b)) std::swap(a, b);
  } else if (is_constant(a) && is_constant(b)) {
    return real(as_real(x) + as_real(y));
  }
  return make(Code::add, x.real, a, b, x.low + y.low, x.high + y.high);
}

OperationId Program::subtract(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (is_constant(a) && is_constant(b)) {
    if (x.real) return real(as_real(x) - as_real(y));
    check(false, x.low - y.high, x.high - y.low);
    return integer(x.word - y.word);
  }
  if (!x.real && is_false(b)) return a;
  return make(Code::subtract, x.real, a, b, x.low - y.high, x.high - y.low);
}

OperationId Program::multiply(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  const auto [low, high] = std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
  check(x.real, low, high);
  if (is_constant(a) && is_constant(b)) return x.real ? real(as_real(x) * as_real(y)) : integer(x.word * y.word);
  if (!x.real) {
    if (is_constant(a) && x.word == 1) return b;
    if (is_constant(b) && y.word == 1) return a;
    if (is_false(a) || is_false(b)) return integer(0);
    if (std::pair(x.level, a) > std::pair(y.level, b)) std::swap(a, b);
  }
  return make(Code::multiply, x.real, a, b, low, high);
}

OperationId Program::negate(OperationId a) {
  const Operation x = at(a);
  if (x.text) throw Untyped{};
  if (is_constant(a)) return x.real ? real(-as_real(x)) : integer(-x.word);
  return make(Code::negate, x.real, a, kNone, -x.high, -x.low);
}

OperationId Program::floor_divide(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (is_constant(a) && is_constant(b) && as_real(y) != 0)
    return x.real ? real(arithmetic::floor_divide(as_real(x), as_real(y)))
                  : integer(arithmetic::floor_divide(x.word, y.word));
  if (!x.real && is_constant(b) && y.word == 1) return a;
  double largest = std::max(std::fabs(x.low), std::fabs(x.high)) + 1;
  if (x.real) {
    const double least = std::min(std::fabs(y.low), std::fabs(y.high));
    if (!(y.low > 0 || y.high < 0) || least < 1e-100) throw Untyped{};
    largest = largest / least + 1;
  }
  if (y.low > 0) {  // monotone in both operands
    const auto [low, high] = std::minmax({x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high});
    return make(Code::floor_divide, x.real, a, b, std::floor(low) - 1, std::floor(high) + 1);
  }
  return make(Code::floor_divide, x.real, a, b, -largest, largest);
}

OperationId Program::modulo(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (is_constant(a) && is_constant(b) && as_real(y) != 0)
    return x.real ? real(arithmetic::floor_modulo(as_real(x), as_real(y)))
                  : integer(arithmetic::floor_modulo(x.word, y.word));
  if (!x.real && is_constant(b) && y.word == 1) return integer(0);
  const double low = y.low >= 0 ? 0 : y.low, high = y.high <= 0 ? 0 : y.high;
  return make(Code::modulo, x.real, a, b, low, high);
}

OperationId Program::divide(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (is_constant(a) && is_constant(b) && as_real(y) != 0)
    return real(x.real ? as_real(x) / as_real(y) : arithmetic::true_divide(x.word, y.word));
  double low = 0, high = 0;
  if (y.low > 0 || y.high < 0) {
    std::tie(low, high) = std::minmax({x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high});
  } else if (!x.real) {  // an integer divisor that is not 0 is at least 1
    high = std::max(std::fabs(x.low), std::fabs(x.high));
    low = -high;
  } else {
    throw Untyped{};
  }
  return make(Code::divide, true, a, b, low, high);
}

OperationId Program::power(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (!x.real && y.low < 0) throw Untyped{};  // some results would be reals
  const double base = std::max(std::fabs(x.low), std::fabs(x.high));
  if (!x.real) {
    const double high = std::max(1.0, std::pow(std::max(base, 1.0), y.high)) * (1 + 1e-9);
    check(false, -high, high);
    std::int64_t result = 0;
    if (is_constant(a) && is_constant(b) && arithmetic::power(x.word, y.word, result)) return integer(result);
    return make(Code::power, false, a, b, x.low < 0 ? -high : 0, high);
  }
  if (x.low <= 0) throw Untyped{};
  auto [low, high] =
      std::minmax({std::pow(x.low, y.low), std::pow(x.low, y.high), std::pow(x.high, y.low), std::pow(x.high, y.high)});
  if (is_constant(a) && is_constant(b)) return real(low);
  return make(Code::power, true, a, b, low * (1 - 1e-9), high * (1 + 1e-9));
}

OperationId Program::minimum(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (a == b) return a;
  if (x.high <= y.low) return a;
  if (y.high <= x.low) return b;
  return make(Code::minimum, x.real, a, b, std::min(x.low, y.low), std::min(x.high, y.high));
}

OperationId Program::maximum(OperationId a, OperationId b) {
  numbers(a, b);
  const Operation x = at(a), y = at(b);
  if (a == b) return a;
  if (x.low >= y.high) return a;
  if (y.low >= x.high) return b;
  return make(Code::maximum, x.real, a, b, std::max(x.low, y.low), std::max(x.high, y.high));
}

OperationId Program::fold(Code code, double x, OperationId a) {
  const bool integer_operand = !at(a).real;
  const auto whole = [&](double value) {
    check(false, value, value);
    return integer_operand ? a : integer(static_cast<std::int64_t>(value));
  };
  switch (code) {
    case Code::absolute:
      return x >= 0 ? a : negate(a);
    case Code::ceil:
      return whole(std::ceil(x));
    case Code::floor:
      return whole(std::floor(x));
    case Code::round:
      return whole(std::nearbyint(x));
    case Code::truncate:
      return whole(std::trunc(x));
    case Code::sqrt:
      if (x < 0) throw Untyped{};
      return real(std::sqrt(x));
    case Code::log:
    case Code::log2:
      if (x <= 0) throw Untyped{};
      return real(code == Code::log ? std::log(x) : std::log2(x));
    default:
      return real(std::exp(x));
  }
}

OperationId Program::unary(Code code, OperationId a) {
  Operation x = at(a);
  if (x.text) throw Untyped{};
  if (is_constant(a)) return fold(code, as_real(x), a);
  const bool rounding = code == Code::ceil || code == Code::floor || code == Code::round || code == Code::truncate;
  if (code == Code::absolute) {
    const double high = std::max(std::fabs(x.low), std::fabs(x.high));
    if (x.low >= 0) return a;
    return make(code, x.real, a, kNone, x.high < 0 ? -x.high : 0, high);
  }
  if (rounding) {
    if (!x.real) return a;
    return make(code, false, a, kNone, std::floor(x.low), std::ceil(x.high));
  }
  a = to_real(a);
  x = at(a);
  double low = 0, high = 0;
  switch (code) {
    case Code::sqrt:
      if (x.low < 0) throw Untyped{};
      low = std::sqrt(x.low);
      high = std::sqrt(x.high);
      break;
    case Code::log:
    case Code::log2: {
      if (x.low <= 0) throw Untyped{};
      const double least = std::log2(x.low), most = std::log2(x.high);
      const double factor = code == Code::log ? std::log(2.0) : 1.0;
      low = least * factor - 1e-9 * (1 + std::fabs(least));
      high = most * factor + 1e-9 * (1 + std::fabs(most));
      break;
    }
    default:  // exp
      if (x.high > 600) throw Untyped{};
      low = std::exp(x.low) * (1 - 1e-9);
      high = std::exp(x.high) * (1 + 1e-9);
  }
  return make(code, true, a, kNone, low, high);
}

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
