// Expressions in the Python syntax that this field's users write: parsed once into one form that is evaluated,
// printed and analysed (space/search_space.hpp prunes with it).
//
//   or and not   < <= > >= == != in, not in (chained as in Python)   + - * / // % **   x if c else y
//   min max abs ceil floor round sqrt log log2 exp int float bool len, occupancy(threads, registers, shared_bytes)
//   numbers, 'strings', True, False, (tuples), [lists], names with dots (device.max_threads_per_block)
//
// Arithmetic is Python's: / gives a real, // and % floor towards minus infinity, integers are 64 bits and overflow is
// an error rather than a wrong number.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/base/error.hpp"
#include "ergotune/space/value.hpp"

namespace ergotune {

/// A node of the parsed form; its definition is private to the space layer (space/expression_tree.hpp in src).
struct ExpressionNode;

/// What names mean while an expression is evaluated: the value of a name, or nullptr when it is unknown.
using Scope = std::function<const Value*(std::string_view name)>;

class Expression {
 public:
  /// An expression that is the number 0.
  Expression();
  /// Parses; throws UserError with the place of the fault (column counted within `text`, added to `place`).
  static Expression parse(std::string_view text, SourcePlace place = {});
  /// The constant expression `value`.
  static Expression constant(const Value& value);

  /// Throws UserError on an unknown name (with the nearest), division by zero, overflow, a wrong kind of operand.
  Value evaluate(const Scope& scope) const;
  /// With every name in `constants`.
  Value evaluate(const Constants& constants) const;
  double evaluate_real(const Scope& scope) const { return evaluate(scope).as_real(); }
  bool evaluate_bool(const Scope& scope) const { return evaluate(scope).truthy(); }

  /// The text it was parsed from.
  const std::string& text() const { return text_; }
  /// Printed from the parsed form, with the fewest parentheses; parses back to the same form.
  std::string to_string() const;
  /// Every name it uses, each once, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const SourcePlace& place() const { return place_; }
  const ExpressionNode& root() const { return *root_; }

 private:
  std::shared_ptr<const ExpressionNode> root_;
  std::string text_;
  std::vector<std::string> names_;
  SourcePlace place_;
};

/// A text with expressions in double braces, "-DN={{n*2}}": literal where it has none. Used for compiler options and
/// CUDA name expressions.
class Template {
 public:
  Template() = default;
  static Template parse(std::string_view text, SourcePlace place = {});
  std::string render(const Scope& scope) const;
  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;
  /// What stands in its double braces, in order, each with its place.
  std::vector<Expression> expressions() const {
    std::vector<Expression> result;
    for (const Part& part : parts_) {
      if (part.is_expression) result.push_back(part.expression);
    }
    return result;
  }

 private:
  struct Part {
    std::string literal;
    bool is_expression = false;
    Expression expression;
  };
  std::vector<Part> parts_;
  std::string text_;
};

}  // namespace ergotune
