// Conversion to and from IEEE 754 binary16, rounding to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ergotune {

/// The bits of an IEEE 754 binary16 number.
struct Half {
  std::uint16_t bits;
};

inline std::uint16_t half_from(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000u);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (std::abs(value) >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (std::abs(value) < 6.103515625e-5) {  // subnormal: multiples of 2^-24; nearbyint rounds half to even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(std::abs(value) * 16777216.0)));
  }
  // Ten of the 52 bits of the fraction remain; what rounds up to the next power of two carries into the exponent.
  constexpr std::uint64_t kBias = std::uint64_t{1023 - 15} << 52;
  const std::uint64_t half = (std::uint64_t{1} << 41) - 1 + ((magnitude >> 42) & 1);
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>((magnitude - kBias + half) >> 42));
}

inline double half_to_double(std::uint16_t bits) {
  const std::uint64_t sign = std::uint64_t{bits & 0x8000u} << 48;
  const std::uint64_t exponent = (bits >> 10) & 0x1fu;
  const std::uint64_t fraction = bits & 0x3ffu;
  if (exponent == 0) return (sign ? -1.0 : 1.0) * static_cast<double>(fraction) * 0x1p-24;
  const std::uint64_t wide = exponent == 31 ? 0x7ff : exponent + 1023 - 15;
  return std::bit_cast<double>(sign | (wide << 52) | (fraction << 42));
}

}  // namespace ergotune
