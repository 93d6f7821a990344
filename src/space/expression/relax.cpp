// Derives what a condition implies for a prefix of the parameters.
#include <cmath>

#include "space/expression/program.hpp"

namespace ergotune::program {
namespace {

class Relaxation {
 public:
  Relaxation(Program& program, std::int32_t level) : program_(program), level_(level) {}

  /// Returns a condition that holds wherever some continuation makes the condition true (`wanted`) or false
  /// (otherwise).
  OperationId condition(OperationId id, bool wanted) {
    const Operation operation = program_.at(id);
    if (operation.level <= level_) return wanted ? program_.truth(id) : program_.logical_not(program_.truth(id));
    switch (operation.code) {
      case Code::logical_not:
        return condition(operation.a, !wanted);
      case Code::logical_and:
      case Code::logical_or: {
        const OperationId a = condition(operation.a, wanted);
        const OperationId b = condition(operation.b, wanted);
        return (operation.code == Code::logical_and) == wanted ? program_.logical_and(a, b) : program_.logical_or(a, b);
      }
      case Code::less:
      case Code::less_equal: {
        if (operation.real_operands) break;
        if (wanted) return ordered(operation.code, operation.a, operation.b);
        return ordered(operation.code == Code::less ? Code::less_equal : Code::less, operation.b, operation.a);
      }
      case Code::equal:
      case Code::not_equal:
        if (operation.real_operands || program_.at(operation.a).text || (operation.code == Code::equal) != wanted)
          break;
        return program_.logical_and(
            program_.logical_and(ordered(Code::less_equal, operation.a, operation.b),
                                 ordered(Code::less_equal, operation.b, operation.a)),
            program_.logical_and(divisible(operation.a, operation.b), divisible(operation.b, operation.a)));
      default:
        break;
    }
    return program_.integer(1);
  }

 private:
  OperationId ordered(Code code, OperationId a, OperationId b) {
    return program_.compare(code, bound(a, false), bound(b, true));
  }

  // x % (p * q) == 0 with unknown q: p divides x. p * q == x with unknown q: p divides x.
  OperationId divisible(OperationId a, OperationId b) {
    const Operation x = program_.at(a);
    OperationId dividend = kNone, divisor = kNone;
    if (x.code == Code::modulo && program_.is_false(b)) {
      dividend = x.a;
      divisor = x.b;
    } else if (x.code == Code::multiply) {
      dividend = b;
      divisor = a;
    }
    if (dividend == kNone || program_.at(dividend).level > level_) return program_.integer(1);
    const OperationId known = known_factor(divisor);
    const Operation factor = program_.at(known);
    if (factor.low <= 0 && factor.high >= 0) return program_.integer(1);
    return program_.compare(Code::equal, program_.modulo(dividend, known), program_.integer(0));
  }

  // Returns a factor of `id` that depends on the prefix only; 1 if there is none.
  OperationId known_factor(OperationId id) {
    const Operation operation = program_.at(id);
    if (operation.level <= level_) return id;
    if (operation.code != Code::multiply) return program_.integer(1);
    return program_.multiply(known_factor(operation.a), known_factor(operation.b));
  }

  OperationId limit(const Operation& operation, bool upper) {
    return program_.integer(static_cast<std::int64_t>(upper ? operation.high : operation.low));
  }

  // Returns the minimum or maximum that an integer operation can still take.
  OperationId bound(OperationId id, bool upper) {
    const Operation operation = program_.at(id);
    if (operation.level <= level_) return id;
    const auto sign_known = [&](OperationId operand) { return program_.at(operand).low >= 0; };
    switch (operation.code) {
      case Code::add:
        return program_.add(bound(operation.a, upper), bound(operation.b, upper));
      case Code::subtract:
        return program_.subtract(bound(operation.a, upper), bound(operation.b, !upper));
      case Code::negate:
        return program_.negate(bound(operation.a, !upper));
      case Code::multiply:
        if (sign_known(operation.a) && sign_known(operation.b))
          return program_.multiply(bound(operation.a, upper), bound(operation.b, upper));
        break;
      case Code::floor_divide:
        if (!operation.real_operands && sign_known(operation.a) && program_.at(operation.b).low > 0)
          return program_.floor_divide(bound(operation.a, upper), bound(operation.b, !upper));
        break;
      case Code::minimum:
        if (!operation.real) return program_.minimum(bound(operation.a, upper), bound(operation.b, upper));
        break;
      case Code::maximum:
        if (!operation.real) return program_.maximum(bound(operation.a, upper), bound(operation.b, upper));
        break;
      default:
        break;
    }
    if (!(std::fabs(operation.low) < 0x1p53 && std::fabs(operation.high) < 0x1p53)) throw Untyped{};
    return limit(operation, upper);
  }

  Program& program_;
  std::int32_t level_;
};

enum class Trend { constant, rising, falling, unknown };

Trend reverse(Trend trend) {
  return trend == Trend::rising ? Trend::falling : trend == Trend::falling ? Trend::rising : trend;
}
Trend both(Trend a, Trend b) {
  if (a == Trend::constant) return b;
  if (b == Trend::constant || a == b) return a;
  return Trend::unknown;
}

Trend trend_of(const Program& program, OperationId id, std::int32_t parameter) {
  const Operation& operation = program.at(id);
  if (operation.level < parameter) return Trend::constant;
  const auto of = [&](OperationId operand) { return trend_of(program, operand, parameter); };
  const auto positive = [&](OperationId operand) { return program.at(operand).low >= 0; };
  switch (operation.code) {
    case Code::constant:
      return Trend::constant;
    case Code::variable:
      return operation.text ? Trend::unknown : Trend::rising;
    case Code::add:
    case Code::minimum:
    case Code::maximum:
      return both(of(operation.a), of(operation.b));
    case Code::subtract:
      return both(of(operation.a), reverse(of(operation.b)));
    case Code::negate:
      return reverse(of(operation.a));
    case Code::multiply:
      return positive(operation.a) && positive(operation.b) ? both(of(operation.a), of(operation.b)) : Trend::unknown;
    case Code::floor_divide:
    case Code::divide:
      if (!positive(operation.a) || program.at(operation.b).low <= 0) return Trend::unknown;
      return both(of(operation.a), reverse(of(operation.b)));
    case Code::to_real:
    case Code::ceil:
    case Code::floor:
    case Code::sqrt:
      return of(operation.a);
    default:
      return Trend::unknown;
  }
}

}  // namespace

OperationId relax(Program& program, OperationId condition, std::int32_t level) {
  try {
    return Relaxation(program, level).condition(condition, true);
  } catch (const Untyped&) {
    return program.integer(1);
  }
}

bool falls_with(const Program& program, OperationId condition, std::int32_t parameter) {
  const Operation& operation = program.at(condition);
  switch (operation.code) {
    case Code::less:
    case Code::less_equal: {
      const Trend left = trend_of(program, operation.a, parameter), right = trend_of(program, operation.b, parameter);
      return both(left, reverse(right)) == Trend::rising;
    }
    case Code::logical_and:
    case Code::logical_or: {
      const auto steady = [&](OperationId id) {
        return program.at(id).level < parameter || falls_with(program, id, parameter);
      };
      return steady(operation.a) && steady(operation.b);
    }
    default:
      return false;
  }
}

}  // namespace ergotune::program
