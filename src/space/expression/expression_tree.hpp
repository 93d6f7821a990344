// The parsed form of an expression, used by the evaluator, the printer and the space builder's compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

using ExpressionPointer = std::shared_ptr<const ExpressionNode>;

enum class Operator { negate, plus, logical_not, add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Relation { less, less_equal, greater, greater_equal, equal, not_equal, in, not_in };
enum class Function {
  min,
  max,
  abs,
  ceil,
  floor,
  round,
  sqrt,
  log,
  log2,
  exp,
  to_int,
  to_float,
  to_bool,
  len,
  occupancy
};

struct ExpressionNode {
  enum class Kind {
    constant,     // value
    name,         // text
    unary,        // op, children[0]
    binary,       // op, children[0..1]
    conjunction,  // children (two or more), nested ones flattened
    disjunction,  // likewise
    comparison,   // children[i] comparisons[i] children[i + 1]
    conditional,  // children[0] if children[1] else children[2]
    call,         // function(children)
    list,         // children; only to the right of in, and as the argument of min, max and len
  };
  Kind kind = Kind::constant;
  Operator op = Operator::add;
  Function function = Function::min;
  Value value;
  std::string text;
  std::vector<ExpressionPointer> children;
  std::vector<Relation> comparisons;
  /// Position of its beginning in the text, for messages.
  std::uint32_t offset = 0;
  /// Length of the longest path to a leaf; limited, so that recursion over the tree is safe.
  std::uint32_t depth = 1;
};

inline constexpr std::uint32_t kMaximumExpressionDepth = 200;

/// Parses an expression; `place` as in Expression::parse.
ExpressionPointer parse_expression(std::string_view text, const SourcePlace& place);
/// Prints the node with as few parentheses as possible; the result parses to the same form.
std::string print_expression(const ExpressionNode& node);
/// True if both trees are equal except for offsets.
bool same_form(const ExpressionNode& a, const ExpressionNode& b);
/// Returns the names used, sorted and without duplicates.
std::vector<std::string> collect_names(const ExpressionNode& node);

/// Reason of a failed evaluation, without the expression's text and place.
struct EvaluationFault {
  std::string message;
};
/// Evaluates a tree. Throws EvaluationFault.
Value evaluate_tree(const ExpressionNode& node, const Scope& scope);
/// Single steps of the evaluator, for constant folding and tests. They throw EvaluationFault.
Value apply_unary(Operator op, const Value& a);
Value apply_binary(Operator op, const Value& a, const Value& b);
bool apply_comparison(Relation comparison, const Value& a, const Value& b);
Value apply_function(Function function, std::span<const Value> arguments);

std::string_view operator_text(Operator op);
std::string_view comparison_text(Relation comparison);
std::string_view function_text(Function function);

/// Names of the device properties that occupancy() requires, followed by the optional ones (allocation units).
std::span<const std::string_view> occupancy_required_names();
/// Resources of an SM, and the units in which it allocates registers (per warp) and shared memory (per block).
struct MultiprocessorLimits {
  std::int64_t blocks = 0, threads = 0, registers = 0, shared_bytes = 0, warp = 1;
  std::int64_t register_unit = 256, shared_unit = 256;
};
/// Reads the limits from device.*; throws EvaluationFault if one is missing or invalid.
MultiprocessorLimits multiprocessor_limits(const Scope& scope);
/// Returns the number of resident blocks per SM, Guerreiro et al. eq. 1-4. `threads` must be positive, `registers` (per
/// thread) and `shared_bytes` must not be negative, and none may exceed 2^40.
std::int64_t resident_blocks(const MultiprocessorLimits& limits, std::int64_t threads, std::int64_t registers,
                             std::int64_t shared_bytes);
/// Evaluates occupancy() of an expression. Throws EvaluationFault.
Value evaluate_occupancy(const Value& threads, const Value& registers, const Value& shared_bytes, const Scope& scope);

}  // namespace ergotune
