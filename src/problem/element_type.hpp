// Names of element types, and dispatch on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/half.hpp"
#include "ergotune/argument.hpp"

namespace ergotune {

/// The element type that a name of the kernel's language means, and how many of them: float32 and 4 for float4. Where
/// it may be a vector, it is one (OpenCL's int16).
std::optional<std::pair<ElementType, int>> vector_type(std::string_view name);

/// Calls `f` with a value of the C++ type of an element type; Half for float16.
template <class F>
auto with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::int8:
      return f(std::int8_t{});
    case ElementType::uint8:
      return f(std::uint8_t{});
    case ElementType::int16:
      return f(std::int16_t{});
    case ElementType::uint16:
      return f(std::uint16_t{});
    case ElementType::int32:
      return f(std::int32_t{});
    case ElementType::uint32:
      return f(std::uint32_t{});
    case ElementType::int64:
      return f(std::int64_t{});
    case ElementType::uint64:
      return f(std::uint64_t{});
    case ElementType::float16:
      return f(Half{});
    case ElementType::float32:
      return f(float{});
    case ElementType::float64:
      return f(double{});
  }
  return f(float{});
}

}  // namespace ergotune
