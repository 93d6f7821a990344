// Outputs against what was expected.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ergotune/problem.hpp"

namespace ergotune {

struct BufferComparison {
  bool equal = true;
  std::size_t different = 0;
  std::size_t first_different = 0;
  /// Largest |actual - expected| / max(|expected|, absolute_tolerance / relative_tolerance): below the floor,
  /// where a relative error means nothing, the absolute tolerance takes its place. Infinity where one side is
  /// not finite.
  double error = 0;
  std::string message;  ///< "3 of 4096 elements differ, the first at 17: 0.5 instead of 0.25"
};

/// Elements agree when |actual - expected| <= absolute + relative * |expected|; NaN agrees with NaN only.
BufferComparison compare(ElementType type, std::span<const std::byte> actual, std::span<const std::byte> expected,
                         double absolute_tolerance, double relative_tolerance);

/// Elements that are no number; 0 for whole numbers.
std::size_t nans_in(ElementType type, std::span<const std::byte> contents);

/// What `how` makes of both, under the same tolerances: sums, extremes or sorted elements, as reals.
BufferComparison compare(Compare how, ElementType type, std::span<const std::byte> actual,
                         std::span<const std::byte> expected, double absolute_tolerance, double relative_tolerance);

}  // namespace ergotune
