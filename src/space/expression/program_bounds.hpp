// What the files of Program share: how large results may be, and constants as numbers.
#pragma once

#include <bit>
#include <cmath>

#include "space/expression/program.hpp"

namespace ergotune::program {

inline constexpr double kWide = 0x1p62;   ///< integers beyond might overflow in the next step
inline constexpr double kExact = 0x1p53;  ///< integers that a double holds exactly
inline constexpr double kHuge = 1e300;    ///< reals beyond might become infinite

inline double as_real(const Operation& constant) {
  return constant.real ? std::bit_cast<double>(constant.word) : static_cast<double>(constant.word);
}

/// Throws Untyped where results in this interval might not fit.
inline void check(bool real, double low, double high) {
  const double limit = real ? kHuge : kWide;
  if (!(low >= -limit && high <= limit)) throw Untyped{};
}

/// An integer's bounds are doubles: beyond the exact ones each is rounded outwards, so that it still is a bound.
inline void widen(Operation& operation) {
  if (std::fabs(operation.low) >= kExact) operation.low = std::nextafter(operation.low, -HUGE_VAL);
  if (std::fabs(operation.high) >= kExact) operation.high = std::nextafter(operation.high, HUGE_VAL);
}

}  // namespace ergotune::program
