#include "ergotune/space.hpp"

#include <fmt/format.h>

#include "ergotune/error.hpp"
#include "space/expression/arithmetic.hpp"

namespace ergotune {

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// Formats as Python's repr of a float: the shortest digits that read back, recognisable as a float.
std::string real_text(double x) {
  std::string text = fmt::format("{}", x);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}
}  // namespace

double Value::as_real() const {
  return std::visit(Overloaded{[](bool v) { return v ? 1.0 : 0.0; },
                               [](std::int64_t v) { return static_cast<double>(v); }, [](double v) { return v; },
                               [](const std::string& v) -> double {
                                 throw Error(fmt::format("'{}' is a text where a number is needed", v));
                               }},
                    data_);
}

std::int64_t Value::as_integer() const {
  return std::visit(Overloaded{[](bool v) -> std::int64_t { return v ? 1 : 0; }, [](std::int64_t v) { return v; },
                               [](double v) -> std::int64_t {
                                 if (!arithmetic::is_whole(v))
                                   throw Error(fmt::format("{} is not a whole number", real_text(v)));
                                 return static_cast<std::int64_t>(v);
                               },
                               [](const std::string& v) -> std::int64_t {
                                 throw Error(fmt::format("'{}' is a text where a whole number is needed", v));
                               }},
                    data_);
}

bool Value::truthy() const {
  return std::visit(Overloaded{[](bool v) { return v; }, [](std::int64_t v) { return v != 0; },
                               [](double v) { return v != 0; }, [](const std::string& v) { return !v.empty(); }},
                    data_);
}

const std::string& Value::as_string() const {
  if (const auto* text = std::get_if<std::string>(&data_)) return *text;
  throw Error(fmt::format("{} is a number where a text is needed", to_string()));
}

std::string Value::to_string() const {
  return std::visit(Overloaded{[](bool v) -> std::string { return v ? "True" : "False"; },
                               [](std::int64_t v) { return fmt::format("{}", v); },
                               [](double v) { return real_text(v); }, [](const std::string& v) { return v; }},
                    data_);
}

std::string Value::to_literal() const {
  if (is_real()) {
    // There are no literals for these: an overflowing literal is infinity, and the difference of infinities is NaN.
    const double x = std::get<double>(data_);
    if (std::isnan(x)) return "1e999 - 1e999";
    if (std::isinf(x)) return x > 0 ? "1e999" : "-1e999";
  }
  if (!is_string()) return to_string();
  std::string text = "'";
  for (const char c : as_string()) {
    switch (c) {
      case '\'':
        text += "\\'";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\t':
        text += "\\t";
        break;
      case '\r':
        text += "\\r";
        break;
      default:
        text += c;
    }
  }
  return text + "'";
}

namespace {
// Compares numbers of different types.
std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_real() && b.is_real()) return std::get<double>(a.data()) <=> std::get<double>(b.data());
  if (a.is_real()) return 0 <=> arithmetic::compare(b.as_integer(), std::get<double>(a.data()));
  if (b.is_real()) return arithmetic::compare(a.as_integer(), std::get<double>(b.data()));
  return a.as_integer() <=> b.as_integer();
}
}  // namespace

bool Value::operator==(const Value& other) const {
  if (is_string() || other.is_string()) return data_ == other.data_;
  return compare_numbers(*this, other) == 0;
}

bool Value::operator<(const Value& other) const {
  if (is_string() || other.is_string()) {
    if (is_string() && other.is_string()) return as_string() < other.as_string();
    return !is_string();
  }
  return compare_numbers(*this, other) < 0;
}

}  // namespace ergotune
