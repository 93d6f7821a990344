// Python's arithmetic on machine numbers: floor division, modulo, true division of integers and comparison of different
// types. Used by the evaluator and the space builder.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>

namespace ergotune::arithmetic {

/// Floor division; b != 0, and not INT64_MIN / -1.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

/// Modulo with the sign of the divisor; b != 0.
inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;  // INT64_MIN % -1 traps
  const std::int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

/// As CPython's float_rem; b != 0.
inline double floor_modulo(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((b < 0) != (r < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

/// As CPython's float_floor_div; b != 0.
inline double floor_divide(double a, double b) {
  const double r = std::fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && ((b < 0) != (r < 0))) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(q);
  return q - floored > 0.5 ? floored + 1 : floored;
}

/// True division of integers, correctly rounded as in Python; b != 0.
inline double true_divide(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (a > -kExact && a < kExact && b > -kExact && b < kExact) return static_cast<double>(a) / static_cast<double>(b);
  __extension__ using Wide = unsigned __int128;
  const bool negative = (a < 0) != (b < 0);
  const std::uint64_t n = a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
  const std::uint64_t d = b < 0 ? 0 - static_cast<std::uint64_t>(b) : static_cast<std::uint64_t>(b);
  if (n == 0) return 0.0;
  // At least 62 bits of the quotient; the remainder is kept as a sticky lowest bit, so that the only rounding happens
  // in the conversion to double.
  const int shift = 63 + std::countl_zero(n) - std::countl_zero(d);
  const Wide scaled = static_cast<Wide>(n) << shift;
  Wide quotient = scaled / d;
  bool sticky = scaled % d != 0;
  int exponent = -shift;
  while (quotient >> 63) {
    sticky = sticky || (quotient & 1) != 0;
    quotient >>= 1;
    ++exponent;
  }
  const auto bits = static_cast<std::uint64_t>(quotient) | (sticky ? 1 : 0);
  const double magnitude = std::ldexp(static_cast<double>(bits), exponent);
  return negative ? -magnitude : magnitude;
}

/// Exact comparison of an integer with a real; unordered for NaN.
inline std::partial_ordering compare(std::int64_t a, double b) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (a >= -kExact && a <= kExact) return static_cast<double>(a) <=> b;
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::floor(b);
  const auto truncated = static_cast<std::int64_t>(whole);
  if (a != truncated) return a < truncated ? std::partial_ordering::less : std::partial_ordering::greater;
  return b > whole ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

/// a ** b for b >= 0; false on overflow.
inline bool power(std::int64_t a, std::int64_t b, std::int64_t& result) {
  result = 1;
  while (b > 0) {
    if ((b & 1) && __builtin_mul_overflow(result, a, &result)) return false;
    b >>= 1;
    if (b > 0 && __builtin_mul_overflow(a, a, &a)) {
      // a later factor needs the square
      return false;
    }
  }
  return true;
}

/// True if a real has an exact 64-bit integer value.
inline bool is_whole(double x) { return x >= -0x1p63 && x < 0x1p63 && std::floor(x) == x; }

}  // namespace ergotune::arithmetic
