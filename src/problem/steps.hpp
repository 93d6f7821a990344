// Kernels of a workload, and its steps run otherwise.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Begins a kernel: the problem's first where that is still empty, else a further one. Its own parameters are called
/// "NAME.BLOCK". Throws UserError for a name that is taken or cannot be one.
Kernel& add_kernel(Problem& problem, const std::string& name);

/// The same launches with nothing side by side.
std::vector<Step> steps_in_sequence(const Problem& problem);
/// The launches of some kernels, side by side as they are given.
std::vector<Step> steps_of_kernels(const Problem& problem, const std::vector<std::size_t>& kernels);
/// The launches of one kernel alone, as many and as large as in the round.
std::vector<Step> steps_alone(const Problem& problem, std::size_t kernel);

}  // namespace ergotune
