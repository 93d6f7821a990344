// The unit of what an objective's expression gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune::search {

/// "s" for "time", "-time" and "2 * time", "J s" for "energy * time", "J/s" for "energy / time"; empty where there is
/// none
/// ("log(time)", "0.3 * time + 0.7 * energy") or is unknown.
std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

/// Which way is better: less of times, energies, powers and what is a sum or product of them; more of what is per time,
/// energy or power ("GB/s", "GFLOP/s/W"). nullopt where neither units nor the quantities' own directions say it.
std::optional<Direction> direction_of_expression(const Expression& expression, const std::vector<Metric>& metrics);

}  // namespace ergotune::search
