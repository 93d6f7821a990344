// Compares outputs with expected outputs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ergotune/argument.hpp"

namespace ergotune {

enum class Compare;
struct Verification;

struct BufferComparison {
  bool equal = true;
  std::size_t different = 0;
  std::size_t first_different = 0;
  /// Largest |actual - expected| / max(|expected|, absolute_tolerance / relative_tolerance), to a thousandth. The lower
  /// bound of the denominator replaces the relative error, meaningless near zero, by the absolute tolerance. Infinity
  /// if one of the two is not finite.
  double error = 0;
  std::string message;  ///< "3 of 4096 elements differ, the first at 17: 0.5 instead of 0.25"
};

/// Compares element by element: |actual - expected| <= absolute + relative * |expected|. NaN equals only NaN.
BufferComparison compare(ElementType type, std::span<const std::byte> actual, std::span<const std::byte> expected,
                         double absolute_tolerance, double relative_tolerance);

/// Returns the number of elements that are NaN or infinite; 0 for integer types.
std::size_t not_finite_in(ElementType type, std::span<const std::byte> contents);

/// Compares sums, extremes or sorted elements of both, as real numbers with the same tolerances.
BufferComparison compare(Compare how, ElementType type, std::span<const std::byte> actual,
                         std::span<const std::byte> expected, double absolute_tolerance, double relative_tolerance);

/// The absolute tolerance where a verification gives none: 1e-6, or 1e-4 of the root mean square of the finite elements
/// where that is less, so that numbers which are small in their unit are not all equal. 1e-6 if all are zero.
double usual_absolute_tolerance(ElementType type, std::span<const std::byte> expected);

/// Compares an output as its verification states; the message names the tolerance. Whole numbers have to be equal
/// unless a tolerance differs from its default, which is meant for rounding.
BufferComparison compare_output(const Verification& verification, const std::string& output, ElementType type,
                                std::span<const std::byte> actual, std::span<const std::byte> expected);

}  // namespace ergotune
