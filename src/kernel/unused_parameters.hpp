// Detects parameters without effect.
#pragma once

#include <string>
#include <vector>

namespace ergotune {

struct Problem;

/// Returns the code parameters whose names do not occur in any source, option, argument, launch or step of the problem.
/// Returns none if a source includes a file that may use them.
std::vector<std::string> unused_parameters(const Problem& problem);

}  // namespace ergotune
