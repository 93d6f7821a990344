// The unit of what an objective's expression gives.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem/problem.hpp"

namespace ergotune::search {

/// "s" for "time", "-time" and "2 * time", "J s" for "energy * time", "J/s" for "energy / time"; empty where there is none
/// ("log(time)", "0.3 * time + 0.7 * energy") or nobody knows.
std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

}  // namespace ergotune::search
