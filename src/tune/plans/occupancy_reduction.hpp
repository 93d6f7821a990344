// Removes configurations that cannot fill the device (Guerreiro et al., PDP 2015, Algorithm 1, lines 1 to 5).
#pragma once

#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

struct Problem;

/// The configurations of `space` in which every kernel's occupancy is above `bound` (share of the threads that an SM or
/// CU can hold). Each kernel is compiled once for each combination of its own parameters' values; nothing runs. The
/// values of a kernel's only parameter are sorted by occupancy, then by size, largest first. A kernel of unknown
/// occupancy (on a CPU) is not restricted; a kernel that never exceeds the bound keeps the values with its highest
/// occupancy. `ledger` compiles through its evaluator. `notes` receives a summary. Throws UserError if the bound is not
/// a share, and for spaces too large to enumerate. `by_shape`: a configuration counts with the highest occupancy of its
/// block shapes, so that tiles and unrolling, which trade occupancy for work per thread, are not restricted; a kernel
/// that never exceeds the bound keeps all.
SearchSpace reduce_by_occupancy(const Problem& problem, const SearchSpace& space, Ledger& ledger, double bound,
                                std::vector<std::string>& notes, bool by_shape = false);

/// True if each kernel has one code parameter, whose values the walk of the paper follows in the order of their
/// occupancy.
bool has_one_parameter_each(const Problem& problem, const SearchSpace& space);

}  // namespace ergotune
