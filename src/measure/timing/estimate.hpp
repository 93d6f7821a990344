// Estimates a launch time and its confidence interval from timed samples.
#pragma once

#include <cstddef>
#include <span>

namespace ergotune {

struct TimeEstimate {
  double value = 0;
  double standard_error = 0;
  /// Half-width of the two-sided 95 % confidence interval relative to the value; infinity for fewer than two samples.
  double relative_half_width = 0;
  std::size_t count = 0;
  double degrees = 0;  ///< degrees of freedom of the standard error: samples left after trimming, minus one
};

/// 20 % trimmed mean with the Winsorised standard error (Tukey and McLaughlin, 1963): if one sample in ten is disturbed
/// by the system, neither changes much. If neighbouring samples are correlated (significantly positive lag-1
/// autocorrelation r), the standard error is widened by sqrt((1 + r) / (1 - r)), since a slow drift of clocks and
/// temperature would otherwise lead to too narrow intervals.
TimeEstimate estimate_time(std::span<const double> samples);

/// True if one of three or four samples is an outlier. (A trimmed mean removes an outlier only from five samples on.)
bool has_outlier(std::span<const double> samples);

}  // namespace ergotune
