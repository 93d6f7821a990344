// Scalars of a launch: converts the application's bytes to bits for comparison, and to values for expressions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "problem/element_type.hpp"

namespace ergotune::launcher {

template <class T>
T read_scalar(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

/// Returns a scalar's bits, widened such that equal numbers have equal bits.
inline std::uint64_t bits_of(ElementType type, const void* address) {
  return with_type(type, [&]<class T>(T) {
    const T value = read_scalar<T>(address);
    if constexpr (std::is_same_v<T, Half>)
      return std::bit_cast<std::uint64_t>(half_to_double(value.bits));
    else if constexpr (std::is_floating_point_v<T>)
      return std::bit_cast<std::uint64_t>(double{value});
    else
      return static_cast<std::uint64_t>(value);
  });
}

/// Returns the number whose bits bits_of() returned.
inline Value value_of(ElementType type, std::uint64_t bits) {
  const bool real = type == ElementType::float16 || type == ElementType::float32 || type == ElementType::float64;
  if (real) return std::bit_cast<double>(bits);
  return static_cast<std::int64_t>(bits);
}

}  // namespace ergotune::launcher
