// Compares outputs with expected outputs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

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

/// Indices of at most 4096 of `count` elements, spread over all, by which usual_size() is estimated.
std::vector<std::size_t> sampled_elements(std::size_t count);

/// The size of an output's numbers. Where no absolute tolerance is given it is the relative one times this size, so
/// that rounding near zero is permitted but numbers that are small in their unit are not all equal. Three times the
/// lower quartile of the sizes of finite elements other than zero (a few large elements do not hide the others), at
/// least 0.01, at most their root mean square. The largest size is left out where it only marks elements (as
/// unreachable, invalid): it occurs three times or more, and is ten times the next. 0.01 if nothing is left.
double usual_size(std::vector<double> values);

/// The same of an output, by some of its elements.
double usual_size(ElementType type, std::span<const std::byte> contents);

/// Compares an output as its verification states; the message names the tolerance and its remedy. Whole numbers have to
/// be equal unless a tolerance differs from its default, which is meant for rounding.
BufferComparison compare_output(const Verification& verification, const std::string& output, ElementType type,
                                std::span<const std::byte> actual, std::span<const std::byte> expected);

}  // namespace ergotune
