// Restrictions compiled for the space builder: one graph of typed operations over the parameters, in which
// equal subexpressions are one operation, constants are folded, and every operation knows the interval of its
// results. The intervals prove most operations free of overflow and division by zero, so that they run
// unchecked over columns of values. What cannot be typed or proved stays an opaque call of the evaluator:
// slower, never different.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ergotune/space.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune::program {

enum class Code : std::uint8_t {
  constant,
  variable,  // the value of parameter a
  position,  // the position of the value of parameter a in its list
  add,
  subtract,
  multiply,
  negate,
  floor_divide,  // 0 where the divisor is 0 (an error operation says so)
  modulo,        // likewise
  divide,        // true division; of integers when the operands are
  power,
  minimum,
  maximum,
  absolute,
  to_real,
  ceil,
  floor,
  round,
  truncate,
  sqrt,
  log,
  log2,
  exp,
  less,
  less_equal,
  equal,
  not_equal,
  logical_not,
  logical_and,
  logical_or,
  select,  // a ? b : c
  opaque,  // calls[a](positions of its inputs)
};

/// Number of an operation; operands have smaller numbers than what uses them.
using OperationId = std::int32_t;
inline constexpr OperationId kNone = -1;

struct Operation {
  Code code = Code::constant;
  bool real = false;           ///< result is a double
  bool real_operands = false;  ///< operands are doubles
  bool text = false;           ///< result is the rank of a text among all texts
  bool boolean = false;        ///< result is 0 or 1
  OperationId a = kNone, b = kNone, c = kNone;
  std::int64_t word = 0;    ///< constant: its bits
  std::int32_t level = -1;  ///< the last parameter it depends on; -1 for constants
  double low = 0, high = 0;
};

/// Something only a function can say, of the positions of some parameters. Returns any integer.
struct Call {
  std::vector<OperationId> inputs;  ///< `position` operations
  std::function<std::int64_t(const std::int64_t* positions)> function;
};

/// Thrown where an expression cannot be typed: it becomes an opaque call.
struct Untyped {};

/// A value, and where it fails (kNone: never): for division by zero.
struct Compiled {
  OperationId value = kNone;
  OperationId error = kNone;
};

class Program {
 public:
  explicit Program(const std::vector<Parameter>& parameters) : parameters_(parameters) {}

  const Operation& at(OperationId id) const { return operations_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return operations_.size(); }
  const Call& call(std::int64_t number) const { return calls_[static_cast<std::size_t>(number)]; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  OperationId integer(std::int64_t value);
  OperationId real(double value);
  /// Throws Untyped when the parameter mixes texts and numbers.
  OperationId variable(std::uint32_t parameter);
  OperationId position(std::uint32_t parameter);
  OperationId opaque(Call call);
  OperationId text(const std::string& text);

  // Each folds constants and decides by intervals; throws Untyped where a result might not fit.
  OperationId add(OperationId a, OperationId b);
  OperationId subtract(OperationId a, OperationId b);
  OperationId multiply(OperationId a, OperationId b);
  OperationId negate(OperationId a);
  OperationId floor_divide(OperationId a, OperationId b);
  OperationId modulo(OperationId a, OperationId b);
  OperationId divide(OperationId a, OperationId b);
  OperationId power(OperationId a, OperationId b);
  OperationId minimum(OperationId a, OperationId b);
  OperationId maximum(OperationId a, OperationId b);
  OperationId unary(Code code, OperationId a);
  OperationId compare(Code code, OperationId a, OperationId b);
  OperationId logical_not(OperationId a);
  OperationId logical_and(OperationId a, OperationId b);
  OperationId logical_or(OperationId a, OperationId b);
  OperationId select(OperationId condition, OperationId a, OperationId b);
  OperationId truth(OperationId a);
  OperationId to_real(OperationId a);

  /// The parameters an operation depends on, ascending.
  std::vector<std::uint32_t> variables_of(OperationId id);

  bool is_constant(OperationId id) const { return at(id).code == Code::constant; }
  bool is_true(OperationId id) const { return is_constant(id) && at(id).word != 0; }
  bool is_false(OperationId id) const { return is_constant(id) && at(id).word == 0; }
  /// Texts among all values and expressions, sorted: comparing ranks is comparing texts.
  void set_texts(std::vector<std::string> sorted) { texts_ = std::move(sorted); }
  std::int64_t text_rank(const std::string& text) const;

 private:
  /// Code, operands, word, and what it is real of: two operations that agree in these are one.
  using Identity = std::tuple<Code, OperationId, OperationId, OperationId, std::int64_t, bool, bool, bool>;
  OperationId intern(Operation operation);
  OperationId make(Code code, bool real, OperationId a, OperationId b, double low, double high);
  OperationId boolean(Code code, OperationId a, OperationId b);
  void numbers(OperationId& a, OperationId& b);
  OperationId fold(Code code, double x, OperationId a);

  const std::vector<Parameter>& parameters_;
  std::vector<Operation> operations_;
  std::vector<Call> calls_;
  std::vector<std::string> texts_;
  std::map<Identity, OperationId> known_;
  std::unordered_map<std::uint32_t, OperationId> variables_;
  // of variables_of(): what its last visits have seen
  std::vector<std::uint32_t> visited_;
  std::uint32_t visit_ = 0;
};

/// What names mean to the compiler.
struct NameTable {
  std::function<std::optional<std::uint32_t>(std::string_view)> parameter;
  std::function<const Value*(std::string_view)> constant;
};

/// The value of an expression; throws Untyped.
Compiled compile_value(Program& program, const ExpressionNode& node, const NameTable& names);

/// A condition split at its conjunctions: parts that must all hold. A part that follows one that can fail
/// stays with it, so that Python's order of evaluation is kept.
std::vector<Compiled> compile_condition(Program& program, const ExpressionNode& node, const NameTable& names);

/// An operation that depends on parameters up to `level` only and holds wherever `condition` can still hold:
/// bounds of products and sums, and divisibility. The constant 1 when nothing can be said.
OperationId relax(Program& program, OperationId condition, std::int32_t level);

/// How a condition changes as one parameter's value grows: once false it stays false.
bool falls_with(const Program& program, OperationId condition, std::int32_t parameter);

inline constexpr double kWide = 0x1p62;   ///< integers beyond might overflow in the next step
inline constexpr double kExact = 0x1p53;  ///< integers that a double holds exactly
inline constexpr double kHuge = 1e300;    ///< reals beyond might become infinite

inline double as_real(const Operation& constant) {
  return constant.real ? std::bit_cast<double>(constant.word) : static_cast<double>(constant.word);
}

/// Throws Untyped where results in this interval might not fit.
inline void check(bool real, double low, double high) {
  const double limit = real ? kHuge : kWide;
  if (!(low >= -limit && high <= limit)) throw Untyped{};
}

/// An integer's bounds are doubles: beyond the exact ones each is rounded outwards, so that it still is a bound.
inline void widen(Operation& operation) {
  if (std::fabs(operation.low) >= kExact) operation.low = std::nextafter(operation.low, -HUGE_VAL);
  if (std::fabs(operation.high) >= kExact) operation.high = std::nextafter(operation.high, HUGE_VAL);
}

}  // namespace ergotune::program
