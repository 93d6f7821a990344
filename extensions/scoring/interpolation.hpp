// Two curves fitted to points: monotone cubic interpolation and isotonic regression. What scoring draws with.
#pragma once

#include <span>
#include <vector>

namespace ergotune::search {

/// Piecewise cubic Hermite interpolation that keeps the data's monotonicity (Fritsch and Butland 1984; the
/// weighted harmonic mean of slopes, with three-point ends). x strictly increasing; outside it the end values
/// hold.
std::vector<double> pchip(std::span<const double> x, std::span<const double> y, std::span<const double> at);

/// Least-squares non-increasing fit of y over x (pool adjacent violators), evaluated at `at`: linear between
/// the fitted points, constant outside. Points with equal x are averaged first. No points: NaN everywhere.
std::vector<double> decreasing_fit(std::span<const double> x, std::span<const double> y, std::span<const double> at);

}  // namespace ergotune::search
