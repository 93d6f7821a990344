// Two curves fitted to points, used for scoring: monotone cubic interpolation and isotonic regression.
#pragma once

#include <span>
#include <vector>

namespace ergotune::search {

/// Piecewise cubic Hermite interpolation that preserves monotonicity of the data (Fritsch and Butland 1984; weighted
/// harmonic mean of slopes, three-point formula at the ends). `x` must be strictly increasing; outside of it the end
/// values are used.
std::vector<double> pchip(std::span<const double> x, std::span<const double> y, std::span<const double> at);

/// Least-squares non-increasing fit of y over x (pool adjacent violators), evaluated at `at`: linear between
/// the fitted points, constant outside. Points with equal x are averaged first. No points: NaN everywhere.
std::vector<double> decreasing_fit(std::span<const double> x, std::span<const double> y, std::span<const double> at);

}  // namespace ergotune::search
