// A parameter's value, and a configuration of values.
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

/// What a parameter can take: Python's bool, int, float or str. Numbers compare across kinds as in Python
/// (1 == 1.0 == True); a string equals only strings.
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
  /// bool, integer or real.
  bool is_number() const { return !is_string(); }

  /// The number as a double. Throws Error for a string.
  double as_real() const;
  /// The number as an integer. Throws Error for a string or a real with a fraction.
  std::int64_t as_integer() const;
  /// Truth as in Python: zero and the empty string are false.
  bool truthy() const;
  /// The string's text. Throws Error for a number.
  const std::string& as_string() const;

  /// As Python's str() prints it (True, 16, 0.5, text without quotes): what macros and cache keys carry.
  std::string to_string() const;
  /// As a literal of the expression language (strings quoted).
  std::string to_literal() const;

  bool operator==(const Value& other) const;
  /// Numbers by size before strings by text: an order for sorting only.
  bool operator<(const Value& other) const;

  const std::variant<bool, std::int64_t, double, std::string>& data() const { return data_; }

 private:
  std::variant<bool, std::int64_t, double, std::string> data_;
};

/// One value per parameter, in the order of the problem's parameters.
using Configuration = std::vector<Value>;

/// Names with values: problem constants, device properties ("device.max_threads_per_block").
using Constants = std::map<std::string, Value, std::less<>>;

// Expressions in the Python syntax that this field's users write: parsed once into one form that is evaluated,
// printed and analysed (ergotune/space.hpp prunes with it).
//
//   or and not   < <= > >= == != in, not in (chained as in Python)   + - * / // % **   x if c else y
//   min max abs ceil floor round sqrt log log2 exp int float bool len, occupancy(threads, registers, shared_bytes)
//   numbers, 'strings', True, False, (tuples), [lists], names with dots (device.max_threads_per_block)
//
// Arithmetic is Python's: / gives a real, // and % floor towards minus infinity, integers are 64 bits and overflow is
// an error rather than a wrong number.
/// A node of the parsed form; its definition is private to the space layer (space/expression/expression_tree.hpp in
/// src).
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

// What a search space is made of: parameters and restrictions.
/// range(start, stop, step) as Python has it (stop excluded); bounds may use constants and earlier parameters.
struct DependentRange {
  Expression start, stop, step;
};

/// Values given by a function of the configuration so far: BEAST's closures. `earlier` looks up constants and the
/// parameters before this one.
using ValueGenerator = std::function<std::vector<Value>(const Scope& earlier)>;

/// What a parameter is for: code parameters are compiled into the kernel; execution parameters are set on the device.
enum class ParameterKind { code, core_clock_mhz, memory_clock_mhz, power_limit_w };

/// A tunable. Exactly one of `values`, `range`, `generator` defines its values.
struct Parameter {
  std::string name;
  std::vector<Value> values;
  std::optional<DependentRange> range;
  ValueGenerator generator;
  /// Where tuning is compared from; the first value when not given.
  std::optional<Value> default_value;
  /// default_value, else the first value; nullopt where a range or a function makes the values and there is no default.
  std::optional<Value> default_or_first() const {
    return default_value || values.empty() ? default_value : std::optional<Value>(values.front());
  }
  ParameterKind kind = ParameterKind::code;
  SourcePlace place;
};

/// Why a restriction is there. Only `performance` ones are guesses that a user may want to lift.
enum class RestrictionClass { correctness, device_limit, performance };

/// A boolean condition a configuration must meet: an expression, or a function for what expressions cannot express.
struct Restriction {
  Expression expression;
  /// Used instead of the expression when set; `function_names` are the parameters it reads.
  std::function<bool(const Scope&)> function;
  std::vector<std::string> function_names;
  /// Shown to the user; the expression's text when empty.
  std::string name;
  RestrictionClass restriction_class = RestrictionClass::correctness;
  std::string label() const { return name.empty() ? expression.text() : name; }
};

// All configurations that meet the restrictions, numbered 0 .. size()-1 in lexicographic order of the
// parameters as given (each parameter's values in their given order). They are kept as a shared decision
// diagram with counts, whatever their number; on request small spaces are also materialised, which makes
// reading them a few times faster.
/// Position of a configuration in a search space.
using ConfigurationIndex = std::uint64_t;

/// Which configurations count as neighbours.
enum class Neighbourhood {
  hamming,            ///< one parameter has another value
  adjacent,           ///< every parameter keeps its value or takes one next to it (in the parameter's list)
  strictly_adjacent,  ///< one parameter takes the value next to its own, the others keep theirs
};

/// How a space is built.
struct SpaceOptions {
  /// Problem constants and device properties, seen by restrictions and ranges.
  Constants constants;
  /// Spaces of up to this many configurations are also materialised: values_at() then reads a table.
  std::uint64_t materialise_limit = 0;
  /// Threads for building; 0 means all cores where it pays.
  int threads = 0;
};

/// What one restriction does to the space.
struct RestrictionEffect {
  std::string label;
  std::string expression;
  RestrictionClass restriction_class = RestrictionClass::correctness;
  /// Configurations that it alone removes from the product of the parameters' values, dependent ranges
  /// observed (as a real: products exceed 2^64). NaN where counting it takes too much.
  double removed_alone = 0;
  /// Configurations that only it removes: the growth of the space without it. 0 means redundant; NaN as
  /// above.
  double removed_only_by_it = 0;
  bool redundant = false;
};

class SearchSpace {
 public:
  /// Builds. Throws UserError for an unknown name, a division by zero in a restriction, a space over 2^63, a
  /// parameter with no values. An empty space is not an error here: size() is 0 and why_empty() gives the reason.
  static SearchSpace build(std::vector<Parameter> parameters, std::vector<Restriction> restrictions,
                           const SpaceOptions& options = {});
  /// The space of exactly these configurations (recorded data without its restrictions), in the order of its
  /// parameters' values. Duplicates are dropped.
  static SearchSpace from_configurations(std::vector<Parameter> parameters, const std::vector<Configuration>& list);

  SearchSpace(SearchSpace&&) noexcept;
  SearchSpace& operator=(SearchSpace&&) noexcept;
  ~SearchSpace();

  /// Number of parameters.
  std::size_t dimensions() const;
  /// As built: `values` holds every value the parameter can take (for a dependent range, the union, sorted).
  const std::vector<Parameter>& parameters() const;
  /// Position of a parameter by name.
  std::optional<std::size_t> parameter_index(std::string_view name) const;
  /// Number of valid configurations.
  std::uint64_t size() const;
  bool empty() const { return size() == 0; }
  /// Product of the parameters' value counts, as a real since it may exceed 2^64.
  double cartesian_size() const;
  bool materialised() const;
  std::size_t memory_bytes() const;
  double build_seconds() const;

  /// The configuration at `index` < size() as positions in the parameters' value lists; out.size() ==
  /// dimensions().
  void values_at(ConfigurationIndex index, std::span<std::uint32_t> out) const;
  Configuration configuration(ConfigurationIndex index) const;
  /// The index of a configuration given by value positions; nullopt when it is not in the space.
  std::optional<ConfigurationIndex> index_of(std::span<const std::uint32_t> values) const;
  std::optional<ConfigurationIndex> index_of(const Configuration& configuration) const;
  /// The configuration in which every parameter takes its default, or its first value where it has none; nullopt when
  /// the restrictions exclude it. It is measured first: gains are relative to it.
  std::optional<ConfigurationIndex> default_configuration() const;
  bool contains(std::span<const std::uint32_t> values) const { return index_of(values).has_value(); }

  /// Appends nothing but the valid neighbours of `index` to a cleared `out`, ascending, without `index`
  /// itself.
  void neighbours(ConfigurationIndex index, Neighbourhood kind, std::vector<ConfigurationIndex>& out) const;
  /// A uniformly random configuration. The space must not be empty.
  ConfigurationIndex sample(Random& random) const { return random.below(size()); }
  /// min(count, size()) different configurations, uniform without replacement.
  std::vector<ConfigurationIndex> sample_distinct(std::size_t count, Random& random) const;
  /// min(count, size()) different configurations, spread as a Latin hypercube over the value positions and
  /// moved to the nearest valid configuration.
  std::vector<ConfigurationIndex> latin_hypercube(std::size_t count, Random& random) const;
  /// The same from a scrambled and shifted Halton sequence (Halton, 1960), one prime base per parameter.
  std::vector<ConfigurationIndex> low_discrepancy(std::size_t count, Random& random) const;
  /// The valid configuration nearest to a point (sum of distances in value positions); for strategies that
  /// move in a continuous space.
  ConfigurationIndex nearest(std::span<const double> value_positions) const;

  /// The effect of each restriction (rebuilds the space once per restriction).
  std::vector<RestrictionEffect> explain() const;
  /// Why there are no configurations: the smallest set of restrictions found that contradict each other.
  std::string why_empty() const;

 private:
  struct State;
  explicit SearchSpace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// "name=value, name=value" for messages.
std::string describe(const std::vector<Parameter>& parameters, const Configuration& configuration);

}  // namespace ergotune
