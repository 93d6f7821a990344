// Restrictions compiled for the space builder: one graph of typed operations on parameters, in which equal
// subexpressions are one operation, constants are folded, and each operation has an interval that contains its results.
// The intervals prove that most operations cannot overflow or divide by zero, so that they run unchecked on columns of
// values. Expressions that cannot be typed or proved safe become opaque calls of the evaluator, which are slower but
// give the same results.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ergotune/space.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune::program {

enum class Code : std::uint8_t {
  constant,
  variable,  // value of parameter a
  position,  // position of the value of parameter a in its list
  add,
  subtract,
  multiply,
  negate,
  floor_divide,  // 0 if the divisor is 0 (reported by a separate error operation)
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

/// Index of an operation; operands have smaller indices than the operations that use them.
using OperationId = std::int32_t;
inline constexpr OperationId kNone = -1;

struct Operation {
  Code code = Code::constant;
  bool real = false;           ///< result is a double
  bool real_operands = false;  ///< operands are doubles
  bool text = false;           ///< result is the rank of a string among all strings
  bool boolean = false;        ///< result is 0 or 1
  OperationId a = kNone, b = kNone, c = kNone;
  std::int64_t word = 0;    ///< constant: its bits
  std::int32_t level = -1;  ///< the last parameter it depends on; -1 for constants
  double low = 0, high = 0;
};

/// A function of the positions of some parameters, for conditions that operations cannot express. May return any
/// integer.
struct Call {
  std::vector<OperationId> inputs;  ///< `position` operations
  std::function<std::int64_t(const std::int64_t* positions)> function;
};

/// Thrown for an expression that cannot be typed; it becomes an opaque call.
struct Untyped {};

/// A value, and the condition under which it fails (division by zero); kNone: never.
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
  /// Throws Untyped if the parameter has both strings and numbers as values.
  OperationId variable(std::uint32_t parameter);
  OperationId position(std::uint32_t parameter);
  OperationId opaque(Call call);
  OperationId text(const std::string& text);

  // Each of these folds constants and uses intervals to simplify; throws Untyped if a result may overflow.
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

  /// The parameters on which an operation depends, ascending.
  std::vector<std::uint32_t> variables_of(OperationId id);

  bool is_constant(OperationId id) const { return at(id).code == Code::constant; }
  bool is_true(OperationId id) const { return is_constant(id) && at(id).word != 0; }
  bool is_false(OperationId id) const { return is_constant(id) && at(id).word == 0; }
  /// Sets the sorted list of all strings in values and expressions, so that ranks can be compared instead of strings.
  void set_texts(std::vector<std::string> sorted) { texts_ = std::move(sorted); }
  std::int64_t text_rank(const std::string& text) const;

 private:
  /// Code, operands, word and types; operations that agree in all of these are the same.
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
  // visited in the latest call of variables_of()
  std::vector<std::uint32_t> visited_;
  std::uint32_t visit_ = 0;
};

/// Resolves names for the compiler.
struct NameTable {
  std::function<std::optional<std::uint32_t>(std::string_view)> parameter;
  std::function<const Value*(std::string_view)> constant;
};

/// Compiles the value of an expression. Throws Untyped.
Compiled compile_value(Program& program, const ExpressionNode& node, const NameTable& names);

/// Compiles a condition, split at its conjunctions into parts that must all hold. A part after one that can fail stays
/// together with it, so that Python's order of evaluation is preserved.
std::vector<Compiled> compile_condition(Program& program, const ExpressionNode& node, const NameTable& names);

/// Returns an operation that depends only on parameters up to `level` and is true wherever `condition` can still become
/// true, derived from bounds of products and sums and from divisibility. The constant 1 if nothing can be derived.
OperationId relax(Program& program, OperationId condition, std::int32_t level);

/// True if the condition, once false, stays false as the parameter's value grows.
bool falls_with(const Program& program, OperationId condition, std::int32_t parameter);

inline constexpr double kWide = 0x1p62;   ///< larger integers may overflow in the next operation
inline constexpr double kExact = 0x1p53;  ///< up to here a double represents all integers exactly
inline constexpr double kHuge = 1e300;    ///< larger reals may become infinite

inline double as_real(const Operation& constant) {
  return constant.real ? std::bit_cast<double>(constant.word) : static_cast<double>(constant.word);
}

/// Throws Untyped if results in this interval may overflow.
inline void check(bool real, double low, double high) {
  const double limit = real ? kHuge : kWide;
  if (!(low >= -limit && high <= limit)) throw Untyped{};
}

/// Bounds of an integer are doubles: above kExact they are rounded outwards, so that they remain bounds.
inline void widen(Operation& operation) {
  if (std::fabs(operation.low) >= kExact) operation.low = std::nextafter(operation.low, -HUGE_VAL);
  if (std::fabs(operation.high) >= kExact) operation.high = std::nextafter(operation.high, HUGE_VAL);
}

}  // namespace ergotune::program
