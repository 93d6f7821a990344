// Parameters that change nothing.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// The code parameters whose names occur in no source, option, argument, launch or step of the problem. None where a
/// source includes a file of its own, which may use them.
std::vector<std::string> unused_parameters(const Problem& problem);

}  // namespace ergotune
