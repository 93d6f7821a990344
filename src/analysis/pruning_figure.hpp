// A picture of what restrictions prune from a search space (after Haugen, Kurzak, VISSOFT 2014).
#pragma once

#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// Stand-alone SVG with logarithmic bars: the product of all values and what is valid, then of each restriction what it
/// removes alone, and, darker, what only it removes.
std::string pruning_figure(const SearchSpace& space, const std::vector<RestrictionEffect>& effects);

}  // namespace ergotune
