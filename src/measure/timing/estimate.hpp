// A launch time and its interval from timed samples.
#pragma once

#include <cstddef>
#include <span>

namespace ergotune {

struct TimeEstimate {
  double value = 0;
  double standard_error = 0;
  /// Half-width of the two-sided 95 % interval over the value; infinity for fewer than two samples.
  double relative_half_width = 0;
  std::size_t count = 0;
  double degrees = 0;  ///< of freedom of the standard error: one less than the samples that trimming keeps
};

/// 20 % trimmed mean with the Winsorised standard error (Tukey and McLaughlin, 1963): one sample in ten that
/// the system disturbed moves neither. The standard error is widened where neighbouring samples are
/// correlated, by sqrt((1 + r) / (1 - r)) with r the lag-1 autocorrelation where that is significantly
/// positive: slow drift of clocks and temperature would otherwise look like certainty.
TimeEstimate estimate_time(std::span<const double> samples);

/// Whether one of three or four samples was held up: five are needed before a trimmed mean leaves it out.
bool has_outlier(std::span<const double> samples);

}  // namespace ergotune
