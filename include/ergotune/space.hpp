// Values, configurations, expressions, parameters, restrictions, and the search space.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/random.hpp"

namespace ergotune {

/// The value of a parameter: Python's bool, int, float or str. Numbers of different types compare as in Python (1 ==
/// 1.0 == True); a string equals only a string.
class Value {
 public:
  Value() : data_(std::int64_t{0}) {}
  Value(bool v) : data_(v) {}
  Value(int v) : data_(std::int64_t{v}) {}
  Value(std::int64_t v) : data_(v) {}
  Value(double v) : data_(v) {}
  Value(std::string v) : data_(std::move(v)) {}
  Value(const char* v) : data_(std::string(v)) {}

  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_real() const { return std::holds_alternative<double>(data_); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  /// True for bool, integer and real.
  bool is_number() const { return !is_string(); }

  /// The number as a double. Throws Error for a string.
  double as_real() const;
  /// The number as an integer. Throws Error for a string or a real with a fraction.
  std::int64_t as_integer() const;
  /// Conversion to bool as in Python: zero and the empty string are false.
  bool truthy() const;
  /// The string. Throws Error for a number.
  const std::string& as_string() const;

  /// Formats the value as Python's str() does (True, 16, 0.5, strings without quotes); used for macros and cache keys.
  std::string to_string() const;
  /// Formats the value as a literal of the expression language (strings in quotes).
  std::string to_literal() const;

  bool operator==(const Value& other) const;
  /// Orders numbers by value before strings by text; intended for sorting only.
  bool operator<(const Value& other) const;

  const std::variant<bool, std::int64_t, double, std::string>& data() const { return data_; }

 private:
  std::variant<bool, std::int64_t, double, std::string> data_;
};

/// One value per parameter, in the order of the problem's parameters.
using Configuration = std::vector<Value>;

/// Names with values: problem constants, device properties ("device.max_threads_per_block").
using Constants = std::map<std::string, Value, std::less<>>;

/// A node of a parsed expression. Its definition is private (src/space/expression/expression_tree.hpp).
struct ExpressionNode;

/// Looks up names during evaluation: returns the value of a name, or nullptr if the name is unknown.
using Scope = std::function<const Value*(std::string_view name)>;

/// An expression in Python's syntax. It is parsed once; the parsed form is evaluated, printed, and analysed to prune
/// the search space. The language has
///
///     or and not   < <= > >= == != in, not in (chained as in Python)   + - * / // % **   x if c else y
///     min max abs ceil floor round sqrt log log2 exp int float bool len, occupancy(threads, registers, shared_bytes)
///     numbers, 'strings', True, False, (tuples), [lists], names with dots (device.max_threads_per_block)
///
/// Arithmetic is Python's: / yields a real, // and % round towards minus infinity. Integers have 64 bits; overflow is
/// an error.
class Expression {
 public:
  /// Constructs the constant expression 0.
  Expression();
  /// Parses an expression. Throws UserError with the place of the error: `place` advanced by the column within `text`.
  static Expression parse(std::string_view text, SourcePlace place = {});
  /// Returns an expression that is the constant `value`.
  static Expression constant(const Value& value);

  /// Evaluates the expression. Throws UserError for an unknown name (with the nearest valid one), a division by zero,
  /// an integer overflow or an operand of the wrong type.
  Value evaluate(const Scope& scope) const;
  /// Evaluates the expression with names looked up in `constants`.
  Value evaluate(const Constants& constants) const;
  double evaluate_real(const Scope& scope) const { return evaluate(scope).as_real(); }
  bool evaluate_bool(const Scope& scope) const { return evaluate(scope).truthy(); }

  /// The text from which the expression was parsed.
  const std::string& text() const { return text_; }
  /// Prints the parsed expression with as few parentheses as possible; the result parses to the same expression.
  std::string to_string() const;
  /// All names that the expression uses, without duplicates, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const SourcePlace& place() const { return place_; }
  const ExpressionNode& root() const { return *root_; }

 private:
  std::shared_ptr<const ExpressionNode> root_;
  std::string text_;
  std::vector<std::string> names_;
  SourcePlace place_;
};

/// A text that may contain expressions in double braces, such as "-DN={{n*2}}". Used for compiler options and CUDA name
/// expressions.
class Template {
 public:
  Template() = default;
  static Template parse(std::string_view text, SourcePlace place = {});
  std::string render(const Scope& scope) const;
  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;
  /// The expressions in double braces in order, each with its place.
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

/// Values range(start, stop, step) as in Python (stop excluded). The bounds may use constants and earlier parameters.
struct DependentRange {
  Expression start, stop, step;
};

/// Function that computes the values of a parameter from the values of earlier parameters (BEAST's closures). `earlier`
/// looks up constants and earlier parameters.
using ValueGenerator = std::function<std::vector<Value>(const Scope& earlier)>;

/// Kind of a parameter: code parameters are compiled into the kernel; execution parameters are set on the device.
enum class ParameterKind { code, core_clock_mhz, memory_clock_mhz, power_limit_w };

/// A tunable parameter. Exactly one of `values`, `range` and `generator` defines its values.
struct Parameter {
  std::string name;
  std::vector<Value> values;
  std::optional<DependentRange> range;
  ValueGenerator generator;
  std::string generator_identity;  ///< what the generator decides by (its source), as a hash; empty: unknown
  /// Value in the default configuration; absent: the first value.
  std::optional<Value> default_value;
  /// Returns default_value, else the first value; nullopt if there is no default and a range or a function defines the
  /// values.
  std::optional<Value> default_or_first() const {
    return default_value || values.empty() ? default_value : std::optional<Value>(values.front());
  }
  ParameterKind kind = ParameterKind::code;
  SourcePlace place;
};

/// Reason for a restriction. Restrictions of class `performance` are guesses that a user may want to lift.
enum class RestrictionClass { correctness, device_limit, performance };

/// A condition that a configuration must satisfy: an expression, or a function for conditions that expressions cannot
/// express.
struct Restriction {
  Expression expression;
  /// Replaces the expression if set; `function_names` are the names of the parameters that the function reads.
  std::function<bool(const Scope&)> function;
  std::vector<std::string> function_names;
  std::string function_identity;  ///< what the function decides by (its source), as a hash; empty: unknown
  /// Name shown to users; empty: the text of the expression.
  std::string name;
  RestrictionClass restriction_class = RestrictionClass::correctness;
  std::string label() const { return name.empty() ? expression.text() : name; }
};

/// Position of a configuration in a search space.
using ConfigurationIndex = std::uint64_t;

/// Which configurations count as neighbours.
enum class Neighbourhood {
  hamming,            ///< one parameter has a different value
  adjacent,           ///< each parameter has the same value or one next to it in the parameter's list of values
  strictly_adjacent,  ///< one parameter has a value next to its current one, the others are unchanged
};

/// How a search space is built.
struct SpaceOptions {
  /// Problem constants and device properties, available to restrictions and ranges.
  Constants constants;
  /// A space with up to this many configurations is also stored as a table, from which values_at() reads.
  std::uint64_t materialise_limit = 0;
  /// Number of threads for building; 0: all cores if the space is large enough.
  int threads = 0;
};

/// The effect of one restriction on the search space.
struct RestrictionEffect {
  std::string label;
  std::string expression;
  RestrictionClass restriction_class = RestrictionClass::correctness;
  /// Number of configurations that this restriction alone removes from the product of the parameters' values (dependent
  /// ranges are respected). A real number, since products exceed 2^64; NaN if counting would take too long.
  double removed_alone = 0;
  /// Number of configurations that only this restriction removes, by which the space would grow without it. 0: the
  /// restriction is redundant; NaN if counting would take too long.
  double removed_only_by_it = 0;
  bool redundant = false;
};

/// All configurations that satisfy the restrictions, numbered 0 .. size()-1 in lexicographic order of the parameters as
/// given (and of each parameter's values as given). Stored as a shared decision diagram with counts; small spaces can
/// in addition be stored as a table, which makes reading them a few times faster.
class SearchSpace {
 public:
  /// Builds a search space. Throws UserError for an unknown name, a division by zero in a restriction, more than 2^63
  /// configurations, or a parameter without values. An empty space is not an error: size() is 0 and why_empty() returns
  /// the reason.
  static SearchSpace build(std::vector<Parameter> parameters, std::vector<Restriction> restrictions,
                           const SpaceOptions& options = {});
  /// Builds the space that consists of exactly these configurations, in the order of the parameters' values; for
  /// recorded data whose restrictions are unknown. Duplicates are dropped.
  static SearchSpace from_configurations(std::vector<Parameter> parameters, const std::vector<Configuration>& list);

  SearchSpace(SearchSpace&&) noexcept;
  SearchSpace& operator=(SearchSpace&&) noexcept;
  ~SearchSpace();

  /// Number of parameters.
  std::size_t dimensions() const;
  /// The parameters given to build(); `values` holds all values that a parameter can take (of a dependent range, the
  /// sorted union).
  const std::vector<Parameter>& parameters() const;
  /// Index of a parameter by name; nullopt if there is none of this name.
  std::optional<std::size_t> parameter_index(std::string_view name) const;
  /// Number of valid configurations.
  std::uint64_t size() const;
  bool empty() const { return size() == 0; }
  /// Product of the numbers of values of all parameters; a real number, since it may exceed 2^64.
  double cartesian_size() const;
  bool materialised() const;
  std::size_t memory_bytes() const;
  double build_seconds() const;

  /// Writes the configuration at `index` (less than size()) to `out`, as positions in the parameters' lists of values;
  /// out.size() must equal dimensions().
  void values_at(ConfigurationIndex index, std::span<std::uint32_t> out) const;
  Configuration configuration(ConfigurationIndex index) const;
  /// Returns the index of a configuration given by positions of values; nullopt if the space does not contain it.
  std::optional<ConfigurationIndex> index_of(std::span<const std::uint32_t> values) const;
  std::optional<ConfigurationIndex> index_of(const Configuration& configuration) const;
  /// The configuration in which each parameter has its default value, or its first one if it has no default; nullopt if
  /// the restrictions exclude it. Gains are reported relative to it.
  std::optional<ConfigurationIndex> default_configuration() const;
  bool contains(std::span<const std::uint32_t> values) const { return index_of(values).has_value(); }

  /// Replaces `out` by the valid neighbours of `index` in ascending order, without `index` itself.
  void neighbours(ConfigurationIndex index, Neighbourhood kind, std::vector<ConfigurationIndex>& out) const;
  /// Returns a uniformly random configuration. The space must not be empty.
  ConfigurationIndex sample(Random& random) const { return random.below(size()); }
  /// Returns min(count, size()) different configurations, uniformly without replacement.
  std::vector<ConfigurationIndex> sample_distinct(std::size_t count, Random& random) const;
  /// Returns min(count, size()) different configurations: a Latin hypercube over the positions of values, each point
  /// moved to the nearest valid configuration.
  std::vector<ConfigurationIndex> latin_hypercube(std::size_t count, Random& random) const;
  /// As latin_hypercube(), with the points of a scrambled and shifted Halton sequence (Halton, 1960) that uses one
  /// prime base per parameter.
  std::vector<ConfigurationIndex> low_discrepancy(std::size_t count, Random& random) const;
  /// Returns the valid configuration nearest to a point (sum of the distances in positions of values); for strategies
  /// that move in a continuous space.
  ConfigurationIndex nearest(std::span<const double> value_positions) const;

  /// Determines the effect of each restriction. Rebuilds the space once per restriction.
  std::vector<RestrictionEffect> explain() const;
  /// Explains why the space is empty: names the smallest contradictory set of restrictions that was found.
  std::string why_empty() const;

 private:
  struct State;
  explicit SearchSpace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Formats a configuration as "name=value, name=value" for messages.
std::string describe(const std::vector<Parameter>& parameters, const Configuration& configuration);

}  // namespace ergotune
