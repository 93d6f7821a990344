// Scalars of a launch: converts the application's bytes to bits for comparison, and to values for expressions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/half.hpp"
#include "ergotune/argument.hpp"

namespace ergotune::launcher {

template <class T>
T read_scalar(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

/// Returns a scalar's bits, widened such that equal numbers have equal bits.
inline std::uint64_t bits_of(ElementType type, const void* address) {
  switch (type) {
    case ElementType::int8:
      return static_cast<std::uint64_t>(std::int64_t{read_scalar<std::int8_t>(address)});
    case ElementType::uint8:
      return read_scalar<std::uint8_t>(address);
    case ElementType::int16:
      return static_cast<std::uint64_t>(std::int64_t{read_scalar<std::int16_t>(address)});
    case ElementType::uint16:
      return read_scalar<std::uint16_t>(address);
    case ElementType::int32:
      return static_cast<std::uint64_t>(std::int64_t{read_scalar<std::int32_t>(address)});
    case ElementType::uint32:
      return read_scalar<std::uint32_t>(address);
    case ElementType::float16:
      return std::bit_cast<std::uint64_t>(half_to_double(read_scalar<std::uint16_t>(address)));
    case ElementType::float32:
      return std::bit_cast<std::uint64_t>(double{read_scalar<float>(address)});
    default:
      return read_scalar<std::uint64_t>(address);
  }
}

/// Returns the number whose bits bits_of() returned.
inline Value value_of(ElementType type, std::uint64_t bits) {
  const bool real = type == ElementType::float16 || type == ElementType::float32 || type == ElementType::float64;
  if (real) return std::bit_cast<double>(bits);
  return static_cast<std::int64_t>(bits);
}

}  // namespace ergotune::launcher
