// A parameter's value, and a configuration of values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

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
  /// Python's truth: zero and the empty string are false.
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

}  // namespace ergotune
