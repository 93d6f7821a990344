// Readings that are wrong in the ways in which readings have been seen to be wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace fake_nvml {

enum class Corruption : int {
  none,
  all_ones,  ///< every bit of the value is set
  zero,
  tiny,          ///< one millionth of it, one unit at least
  too_small,     ///< watts where milliwatts are said
  too_large,     ///< microwatts where milliwatts are said
  frozen,        ///< what it was at first
  frozen_later,  ///< what it was after so many calls (`after`)
  backwards,     ///< less with every call
  jumping,       ///< far up and back at random
  negative,      ///< -1 as a signed value
  not_a_number,  ///< a double that is none
  infinite,
  as_double,     ///< the bits of the integer, said to be a double
  as_short,      ///< the integer, said to be an unsigned short
  as_unknown,    ///< said to be of a type that there is not
  garbage_high,  ///< said to be 64 bits wide, of which the upper ones are garbage
  stamps_zero,   ///< time stamps of buffered samples: none
  stamps_ones,   ///< ... every bit set
  stamps_old,    ///< ... an hour ago
  alternating,   ///< every second value all ones
  wraps,         ///< a counter of 32 bits that begins again after so many counts (`after`)
};

/// One function's, or one field's ("field:186").
struct CorruptionState {
  char function[48];
  Corruption kind;
  std::uint64_t calls, after, held;
};

/// NVML's value type of a value, and its bits.
struct TypedValue {
  std::uint64_t bits;
  unsigned type;
};

/// `width` bits are the value's own; `type` its NVML value type.
inline TypedValue corrupt(CorruptionState& state, std::uint64_t value, unsigned width, unsigned type) {
  const std::uint64_t ones = width >= 64 ? ~0ull : (1ull << width) - 1;
  const std::uint64_t call = state.calls++;
  const auto of_double = [](double d) {
    TypedValue out{0, 0};
    std::memcpy(&out.bits, &d, sizeof d);
    return out;
  };
  switch (state.kind) {
    case Corruption::all_ones:
      return {ones, type};
    case Corruption::zero:
      return {0, type};
    case Corruption::tiny:
      return {value / 1'000'000 + 1, type};
    case Corruption::too_small:
      return {value / 1000, type};
    case Corruption::too_large:
      return {(value * 1000) & ones, type};
    case Corruption::frozen:
    case Corruption::frozen_later:
      if (call <= state.after) state.held = value;
      return {state.held, type};
    case Corruption::backwards:
      if (call == 0) state.held = value;
      return {state.held - std::min(state.held, call * 100), type};
    case Corruption::jumping:
      return {(call * 2654435761u) % 7 == 0 ? (value + (1ull << 30)) & ones : value, type};
    case Corruption::negative:
      return {ones, 5};
    case Corruption::not_a_number:
      return of_double(std::numeric_limits<double>::quiet_NaN());
    case Corruption::infinite:
      return of_double(std::numeric_limits<double>::infinity());
    case Corruption::as_double:
      return {value, 0};
    case Corruption::as_short:
      return {value, 6};
    case Corruption::as_unknown:
      return {value, 42};
    case Corruption::garbage_high:
      return {value | 0xdeadull << 40, 3};
    case Corruption::alternating:
      return {call % 2 ? ones : value, type};
    case Corruption::wraps:
      if (call == 0) state.held = value;
      return {(value - state.held - state.after) & 0xffffffffull, type};
    default:
      return {value, type};
  }
}

}  // namespace fake_nvml
