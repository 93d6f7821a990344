// Checks of a problem that need no device.
#pragma once

namespace ergotune {

struct Problem;

/// Checks the names used in expressions and the values of parameters. For problems that were read from a file as well
/// as for those made or changed in memory. Throws UserError.
void check_problem(const Problem& problem);

}  // namespace ergotune
