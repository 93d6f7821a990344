// Conversion to and from IEEE 754 binary16, rounding to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ergotune {

/// The bits of an IEEE 754 binary16 number.
struct Half {
  std::uint16_t bits;
};

inline std::uint16_t half_from(double value) {
  const auto f = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(f)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  const double magnitude = std::abs(value);
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 6.103515625e-5) {  // subnormal: multiples of 2^-24; nearbyint rounds half to even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 16777216.0)));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  auto mantissa = static_cast<std::uint32_t>(std::nearbyint(fraction * 2048.0));
  if (mantissa == 2048) {
    mantissa = 1024;
    ++exponent;
  }
  return static_cast<std::uint16_t>(sign | (static_cast<std::uint32_t>(exponent + 14) << 10) | (mantissa & 0x3ffu));
}

inline double half_to_double(std::uint16_t bits) {
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 31) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace ergotune
