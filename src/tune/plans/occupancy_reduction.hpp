// LeavingMessage out what cannot fill the device (Guerreiro et al., PDP 2015, Algorithm 1, lines 1 to 5).
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

/// The configurations of `space` in which the occupancy of every kernel is above `bound` (a share of the threads that a
/// multiprocessor can hold). Every kernel is compiled once for each of its own configurations; nothing runs. Where a
/// kernel has one parameter of its own, its values stand in the order of their promise: by occupancy, then by size, the
/// largest first. A kernel of unknown occupancy (a CPU) is left as it is; one that never reaches the bound keeps what
/// comes nearest. `ledger` asks the evaluator. `notes` says what was done. Throws UserError for a bound that is no
/// share and for spaces too large to be looked through.
SearchSpace reduce_by_occupancy(const Problem& problem, const SearchSpace& space, Ledger& ledger, double bound,
                                std::vector<std::string>& notes);

}  // namespace ergotune
