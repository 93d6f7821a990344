// Making the steps of a workload in C++, as [workload] says them in a problem file.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Begins a kernel: the problem's first where that is still empty, else a further one. Its own parameters are called
/// "NAME.BLOCK". Throws UserError for a name that is taken or cannot be one.
Kernel& add_kernel(Problem& problem, const std::string& name);

/// A kernel's launches, back to back. Throws UserError where the problem has no such kernel.
Step launch_step(const Problem& problem, const std::string& kernel, Expression launches = Expression::constant(1));
/// `steps` for each value of `variable`, as Python's range(from, to, by) has them.
Step loop_step(const std::string& variable, Expression from, Expression to, std::vector<Step> steps,
               Expression by = Expression::constant(1));
/// From here to the end of the round, what two names of buffers stand for is exchanged.
Step swap_step(const std::string& first, const std::string& second);
/// Steps in their order, as a branch of a concurrent step.
Step branch_step(const std::string& name, std::vector<Step> steps);
/// Branches (launches, loops, branches with a name) side by side; `order`: names of those that are queued first, with
/// commas between them. Throws UserError for two of the same name, and for fewer than two.
Step concurrent_step(std::vector<Step> branches, const std::string& order = "");

/// The same launches with nothing side by side.
std::vector<Step> steps_in_sequence(const Problem& problem);
/// The launches of some kernels, side by side as they are given.
std::vector<Step> steps_of_kernels(const Problem& problem, const std::vector<std::size_t>& kernels);
/// The launches of one kernel alone, as many and as large as in the round.
std::vector<Step> steps_alone(const Problem& problem, std::size_t kernel);

}  // namespace ergotune
