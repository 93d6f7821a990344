// The parsed form of an expression: what the evaluator walks, the printer prints and the space builder
// compiles.
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
  /// Where it begins in the text, for messages.
  std::uint32_t offset = 0;
  /// Longest path to a leaf: limited, so that recursion over the tree is safe.
  std::uint32_t depth = 1;
};

inline constexpr std::uint32_t kMaximumExpressionDepth = 200;

/// Parses; `place` as in Expression::parse.
ExpressionPointer parse_expression(std::string_view text, const SourcePlace& place);
/// The fewest parentheses that give the same form back.
std::string print_expression(const ExpressionNode& node);
/// Same form (offsets aside).
bool same_form(const ExpressionNode& a, const ExpressionNode& b);
/// Names used, sorted, each once.
std::vector<std::string> collect_names(const ExpressionNode& node);

/// Why an evaluation failed, before it is put into words with the expression's text and place.
struct EvaluationFault {
  std::string message;
};
/// Evaluates; throws EvaluationFault.
Value evaluate_tree(const ExpressionNode& node, const Scope& scope);
/// Single steps of the evaluator, for constant folding and tests; throw EvaluationFault.
Value apply_unary(Operator op, const Value& a);
Value apply_binary(Operator op, const Value& a, const Value& b);
bool apply_comparison(Relation comparison, const Value& a, const Value& b);
Value apply_function(Function function, std::span<const Value> arguments);

std::string_view operator_text(Operator op);
std::string_view comparison_text(Relation comparison);
std::string_view function_text(Function function);

/// The device properties that occupancy() needs, then those it takes where given (allocation units).
std::span<const std::string_view> occupancy_required_names();
/// What a multiprocessor has, and the units in which it gives registers (to a warp) and shared memory (to a block).
struct MultiprocessorLimits {
  std::int64_t blocks = 0, threads = 0, registers = 0, shared_bytes = 0, warp = 1;
  std::int64_t register_unit = 256, shared_unit = 256;
};
/// From device.*; throws EvaluationFault where one is missing or makes no sense.
MultiprocessorLimits multiprocessor_limits(const Scope& scope);
/// Blocks per multiprocessor, Guerreiro et al. eq. 1-4; `threads` is positive, `registers` (of a thread) and
/// `shared_bytes` are not negative, and none is larger than 2^40.
std::int64_t resident_blocks(const MultiprocessorLimits& limits, std::int64_t threads, std::int64_t registers,
                             std::int64_t shared_bytes);
/// The same in an expression; throws EvaluationFault.
Value evaluate_occupancy(const Value& threads, const Value& registers, const Value& shared_bytes, const Scope& scope);

}  // namespace ergotune
