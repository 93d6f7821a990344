// Compiles the parsed form to operations.
#include <algorithm>

#include "space/expression/program.hpp"

namespace ergotune::program {
namespace {

using Kind = ExpressionNode::Kind;

class Compiler {
 public:
  Compiler(Program& program, const NameTable& names) : program_(program), names_(names) {}

  Compiled value(const ExpressionNode& node) {
    switch (node.kind) {
      case Kind::constant:
        return {constant(node.value), kNone};
      case Kind::name: {
        if (const auto parameter = names_.parameter(node.text)) return {program_.variable(*parameter), kNone};
        const Value* known = names_.constant(node.text);
        if (known == nullptr) throw Untyped{};
        return {constant(*known), kNone};
      }
      case Kind::unary:
        return unary(node);
      case Kind::binary:
        return binary(node);
      case Kind::conjunction:
      case Kind::disjunction:
        return logical(node);
      case Kind::comparison:
        return comparison(node);
      case Kind::conditional: {
        const Compiled condition = truth(*node.children[1]);
        const Compiled yes = value(*node.children[0]), no = value(*node.children[2]);
        return {program_.select(condition.value, yes.value, no.value),
                either(condition.error, chosen(condition.value, yes.error, no.error))};
      }
      case Kind::call:
        return call(node);
      case Kind::list:
        break;
    }
    throw Untyped{};
  }

  Compiled truth(const ExpressionNode& node) {
    if (node.kind == Kind::conjunction || node.kind == Kind::disjunction)
      return logical_truth(node.kind, node.children);
    const Compiled result = value(node);
    return {program_.truth(result.value), result.error};
  }

  Compiled logical_truth(Kind kind, std::span<const ExpressionPointer> children) {
    const bool any = kind == Kind::disjunction;
    std::vector<Compiled> parts;
    for (const auto& child : children) parts.push_back(truth(*child));
    // an operand fails only if the operands before it have not decided
    OperationId error = kNone;
    for (std::size_t i = parts.size(); i-- > 0;) {
      if (error != kNone) {
        const OperationId reached = any ? program_.logical_not(parts[i].value) : parts[i].value;
        error = program_.logical_and(reached, error);
      }
      error = either(parts[i].error, error);
    }
    // sorted by level, so that the value of a prefix of parameters is one operation
    std::ranges::stable_sort(parts, [&](const Compiled& a, const Compiled& b) {
      return program_.at(a.value).level < program_.at(b.value).level;
    });
    OperationId result = parts[0].value;
    for (std::size_t i = 1; i < parts.size(); ++i)
      result = any ? program_.logical_or(result, parts[i].value) : program_.logical_and(result, parts[i].value);
    return {result, error};
  }

 private:
  OperationId constant(const Value& value) {
    if (value.is_string()) return program_.text(value.as_string());
    return value.is_real() ? program_.real(value.as_real()) : program_.integer(value.as_integer());
  }

  OperationId either(OperationId a, OperationId b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    return program_.logical_or(a, b);
  }
  OperationId chosen(OperationId condition, OperationId yes, OperationId no) {
    if (yes == kNone && no == kNone) return kNone;
    const OperationId zero = program_.integer(0);
    return program_.select(condition, yes == kNone ? zero : yes, no == kNone ? zero : no);
  }

  Compiled unary(const ExpressionNode& node) {
    if (node.op == Operator::logical_not) {
      const Compiled operand = truth(*node.children[0]);
      return {program_.logical_not(operand.value), operand.error};
    }
    const Compiled operand = value(*node.children[0]);
    if (program_.at(operand.value).text) throw Untyped{};
    return {node.op == Operator::negate ? program_.negate(operand.value) : operand.value, operand.error};
  }

  // Collects the operands of a chain of + or * if all are integers and all partial results fit: then their order is
  // free, and sorting by level yields the longest prefixes.
  void flatten(const ExpressionNode& node, Operator op, std::vector<Compiled>& parts) {
    for (const auto& child : node.children) {
      if (child->kind == Kind::binary && child->op == op)
        flatten(*child, op, parts);
      else
        parts.push_back(value(*child));
    }
  }

  Compiled chain(const ExpressionNode& node) {
    std::vector<Compiled> parts;
    flatten(node, node.op, parts);
    const bool product = node.op == Operator::multiply;
    double largest = product ? 1 : 0;
    bool integers = true;
    OperationId error = kNone;
    for (const auto& part : parts) {
      const Operation& operation = program_.at(part.value);
      integers = integers && !operation.real && !operation.text;
      const double size = std::max(std::abs(operation.low), std::abs(operation.high));
      largest = product ? largest * std::max(1.0, size) : largest + size;
      error = either(error, part.error);
    }
    if (!integers || largest > 0x1p62) {
      const Compiled left = value(*node.children[0]), right = value(*node.children[1]);
      return {product ? program_.multiply(left.value, right.value) : program_.add(left.value, right.value), error};
    }
    std::ranges::stable_sort(parts, [&](const Compiled& a, const Compiled& b) {
      return std::pair(program_.at(a.value).level, a.value) < std::pair(program_.at(b.value).level, b.value);
    });
    OperationId result = parts[0].value;
    for (std::size_t i = 1; i < parts.size(); ++i)
      result = product ? program_.multiply(result, parts[i].value) : program_.add(result, parts[i].value);
    return {result, error};
  }

  Compiled binary(const ExpressionNode& node) {
    if (node.op == Operator::add || node.op == Operator::multiply) return chain(node);
    const Compiled left = value(*node.children[0]), right = value(*node.children[1]);
    OperationId error = either(left.error, right.error);
    const bool divides =
        node.op == Operator::divide || node.op == Operator::floor_divide || node.op == Operator::modulo;
    if (divides) {
      const Operation divisor = program_.at(right.value);
      if (divisor.text) throw Untyped{};
      if (divisor.low <= 0 && divisor.high >= 0) {
        const OperationId zero =
            program_.compare(Code::equal, right.value, divisor.real ? program_.real(0) : program_.integer(0));
        if (divisor.low == divisor.high) throw Untyped{};  // always fails; the evaluator reports how
        error = either(error, zero);
      }
    }
    switch (node.op) {
      case Operator::subtract:
        return {program_.subtract(left.value, right.value), error};
      case Operator::divide:
        return {program_.divide(left.value, right.value), error};
      case Operator::floor_divide:
        return {program_.floor_divide(left.value, right.value), error};
      case Operator::modulo:
        return {program_.modulo(left.value, right.value), error};
      case Operator::power:
        return {program_.power(left.value, right.value), error};
      default:
        throw Untyped{};
    }
  }

  Compiled logical(const ExpressionNode& node) {
    // Python returns the deciding operand, not True or False
    std::vector<Compiled> parts;
    for (const auto& child : node.children) parts.push_back(value(*child));
    if (std::ranges::all_of(parts, [&](const Compiled& part) { return program_.at(part.value).boolean; }))
      return logical_truth(node.kind, node.children);
    Compiled result = parts.back();
    for (std::size_t i = parts.size() - 1; i-- > 0;) {
      const OperationId decided = program_.truth(parts[i].value);
      const bool any = node.kind == Kind::disjunction;
      const OperationId zero = kNone;
      result.error =
          either(parts[i].error, any ? chosen(decided, zero, result.error) : chosen(decided, result.error, zero));
      result.value = any ? program_.select(decided, parts[i].value, result.value)
                         : program_.select(decided, result.value, parts[i].value);
    }
    return result;
  }

  Compiled compare_once(Relation comparison, const Compiled& left, const ExpressionNode& right_node, Compiled& right) {
    if (comparison == Relation::in || comparison == Relation::not_in) {
      if (right_node.kind != Kind::list) throw Untyped{};
      OperationId found = program_.integer(0), error = left.error;
      for (const auto& item : right_node.children) {
        const Compiled candidate = value(*item);
        error = either(error, candidate.error);
        found = program_.logical_or(found, program_.compare(Code::equal, left.value, candidate.value));
      }
      return {comparison == Relation::in ? found : program_.logical_not(found), error};
    }
    right = value(right_node);
    const OperationId error = either(left.error, right.error);
    switch (comparison) {
      case Relation::less:
        return {program_.compare(Code::less, left.value, right.value), error};
      case Relation::less_equal:
        return {program_.compare(Code::less_equal, left.value, right.value), error};
      case Relation::greater:
        return {program_.compare(Code::less, right.value, left.value), error};
      case Relation::greater_equal:
        return {program_.compare(Code::less_equal, right.value, left.value), error};
      case Relation::equal:
        return {program_.compare(Code::equal, left.value, right.value), error};
      default:
        return {program_.compare(Code::not_equal, left.value, right.value), error};
    }
  }

 public:
  /// Returns the steps of a chained comparison.
  std::vector<Compiled> comparison_steps(const ExpressionNode& node) {
    std::vector<Compiled> steps;
    Compiled left = value(*node.children[0]);
    for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
      Compiled right;
      steps.push_back(compare_once(node.comparisons[i], left, *node.children[i + 1], right));
      left = right;
    }
    return steps;
  }

 private:
  Compiled comparison(const ExpressionNode& node) {
    const auto steps = comparison_steps(node);
    OperationId error = kNone;
    OperationId result = program_.integer(1);
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (error != kNone) error = program_.logical_and(steps[i].value, error);
      error = either(steps[i].error, error);
    }
    for (const auto& step : steps) result = program_.logical_and(result, step.value);
    return {result, error};
  }

  Compiled call(const ExpressionNode& node) {
    const bool over_list = node.children.size() == 1 && node.children[0]->kind == Kind::list;
    const auto& arguments = over_list ? node.children[0]->children : node.children;
    if (node.function == Function::len || arguments.empty()) throw Untyped{};
    std::vector<Compiled> values;
    OperationId error = kNone;
    for (const auto& argument : arguments) {
      values.push_back(value(*argument));
      if (program_.at(values.back().value).text) throw Untyped{};
      error = either(error, values.back().error);
    }
    const OperationId first = values[0].value;
    switch (node.function) {
      case Function::min:
      case Function::max: {
        if (!over_list && values.size() == 1) throw Untyped{};
        OperationId result = first;
        for (std::size_t i = 1; i < values.size(); ++i)
          result = node.function == Function::min ? program_.minimum(result, values[i].value)
                                                  : program_.maximum(result, values[i].value);
        return {result, error};
      }
      case Function::abs:
        return {program_.unary(Code::absolute, first), error};
      case Function::ceil:
        return {program_.unary(Code::ceil, first), error};
      case Function::floor:
        return {program_.unary(Code::floor, first), error};
      case Function::to_int:
        return {program_.unary(Code::truncate, first), error};
      case Function::round:
        if (values.size() > 1) throw Untyped{};
        return {program_.unary(Code::round, first), error};
      case Function::sqrt:
        return {program_.unary(Code::sqrt, first), error};
      case Function::log:
        if (values.size() > 1) throw Untyped{};
        return {program_.unary(Code::log, first), error};
      case Function::log2:
        return {program_.unary(Code::log2, first), error};
      case Function::exp:
        return {program_.unary(Code::exp, first), error};
      case Function::to_float:
        return {program_.to_real(first), error};
      case Function::to_bool:
        return {program_.truth(first), error};
      case Function::occupancy:
        return {occupancy(first, values[1].value, values[2].value), error};
      default:
        throw Untyped{};
    }
  }

  // Guerreiro et al. eq. 1-4, as in occupancy.cpp.
  OperationId occupancy(OperationId threads, OperationId registers, OperationId shared) {
    constexpr double kSane = 0x1p40;
    for (const auto argument : {threads, registers, shared})
      if (program_.at(argument).real || program_.at(argument).low < 0 || program_.at(argument).high > kSane)
        throw Untyped{};
    if (program_.at(threads).low < 1) throw Untyped{};
    MultiprocessorLimits limits;
    try {
      limits = multiprocessor_limits([&](std::string_view name) { return names_.constant(name); });
    } catch (const EvaluationFault&) {
      throw Untyped{};
    }
    auto whole = [&](std::int64_t x) { return program_.integer(x); };
    auto units = [&](OperationId x, std::int64_t unit) {
      return program_.floor_divide(program_.add(x, whole(unit - 1)), whole(unit));
    };
    const OperationId warps = units(threads, limits.warp);
    OperationId blocks =
        program_.minimum(whole(limits.blocks), program_.floor_divide(whole(limits.threads / limits.warp), warps));
    auto limit = [&](OperationId amount, OperationId limit_if_used) {
      const OperationId used = program_.compare(Code::less, whole(0), amount);
      blocks = program_.select(used, program_.minimum(blocks, limit_if_used), blocks);
    };
    const OperationId one = whole(1);
    limit(shared, program_.floor_divide(whole(limits.shared_bytes),
                                        program_.multiply(program_.maximum(one, units(shared, limits.shared_unit)),
                                                          whole(limits.shared_unit))));
    const OperationId per_warp = program_.multiply(
        program_.maximum(one, units(program_.multiply(registers, whole(limits.warp)), limits.register_unit)),
        whole(limits.register_unit));
    limit(registers, program_.floor_divide(program_.floor_divide(whole(limits.registers), per_warp), warps));
    return blocks;
  }

  Program& program_;
  const NameTable& names_;
};

}  // namespace

Compiled compile_value(Program& program, const ExpressionNode& node, const NameTable& names) {
  return Compiler(program, names).value(node);
}

std::vector<Compiled> compile_condition(Program& program, const ExpressionNode& node, const NameTable& names) {
  Compiler compiler(program, names);
  std::vector<Compiled> parts;
  if (node.kind == Kind::conjunction) {
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      auto inner = compile_condition(program, *node.children[i], names);
      const bool can_fail = std::ranges::any_of(inner, [](const Compiled& c) { return c.error != kNone; });
      if (can_fail) {
        parts.push_back(compiler.logical_truth(Kind::conjunction, std::span(node.children).subspan(i)));
        break;
      }
      parts.insert(parts.end(), inner.begin(), inner.end());
    }
    return parts;
  }
  if (node.kind == Kind::comparison && node.comparisons.size() > 1) {
    parts = compiler.comparison_steps(node);
    if (std::ranges::none_of(parts, [](const Compiled& c) { return c.error != kNone; })) return parts;
    parts.clear();
  }
  parts.push_back(compiler.truth(node));
  return parts;
}

}  // namespace ergotune::program
