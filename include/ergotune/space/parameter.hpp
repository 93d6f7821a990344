// What a search space is made of: parameters and restrictions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/base/error.hpp"
#include "ergotune/space/expression.hpp"
#include "ergotune/space/value.hpp"

namespace ergotune {

/// range(start, stop, step) as Python has it (stop excluded); bounds may use constants and earlier parameters.
struct DependentRange {
  Expression start, stop, step;
};

/// Values given by a function of the configuration so far: BEAST's closures. `earlier` looks up constants and the
/// parameters before this one.
using ValueGenerator = std::function<std::vector<Value>(const Scope& earlier)>;

/// What a parameter is for: code parameters are compiled into the kernel; execution parameters are set on the device.
enum class ParameterKind { code, core_clock_mhz, memory_clock_mhz, power_limit_w };

/// A tunable. Exactly one of `values`, `range`, `generator` says what it can take.
struct Parameter {
  std::string name;
  std::vector<Value> values;
  std::optional<DependentRange> range;
  ValueGenerator generator;
  /// Where tuning is compared from; the first value when not given.
  std::optional<Value> default_value;
  ParameterKind kind = ParameterKind::code;
  SourcePlace place;
};

/// Why a restriction is there. Only `performance` ones are guesses that a user may want to lift.
enum class RestrictionClass { correctness, device_limit, performance };

/// A boolean condition a configuration must meet: an expression, or a function for what expressions cannot say.
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

}  // namespace ergotune
