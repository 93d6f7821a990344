// What is known to be wrong of a problem before anything runs.
#pragma once

#include "ergotune/problem.hpp"

namespace ergotune {

/// What is checked of every file, of a problem that was made or changed in memory: names, and the values of parameters.
/// Throws UserError.
void check_problem(const Problem& problem);

}  // namespace ergotune
