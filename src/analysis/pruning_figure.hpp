// Draws what restrictions remove from a search space (after Haugen, Kurzak, VISSOFT 2014).
#pragma once

#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// Stand-alone SVG with logarithmic bars: the product of all values, the valid configurations, and for each restriction
/// what it removes by itself and, darker, what no other restriction removes.
std::string pruning_figure(const SearchSpace& space, const std::vector<RestrictionEffect>& effects);

}  // namespace ergotune
