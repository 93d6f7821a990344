// Adds kernels to a workload, and derives variants of its steps.
#pragma once

#include <string>
#include <vector>

namespace ergotune {

struct Kernel;
struct Problem;
struct Step;

/// Adds a kernel: uses the problem's first kernel if that is still empty, else appends one. The kernel's own parameters
/// are named "NAME.BLOCK". Throws UserError for an invalid or duplicate name.
Kernel& add_kernel(Problem& problem, const std::string& name);

/// Returns the same launches without concurrency.
std::vector<Step> steps_in_sequence(const Problem& problem);
/// Returns the launches of the given kernels only, with their concurrency.
std::vector<Step> steps_of_kernels(const Problem& problem, const std::vector<std::size_t>& kernels);
/// Returns the launches of one kernel only, as many and of the same size as in the iteration.
std::vector<Step> steps_alone(const Problem& problem, std::size_t kernel);

}  // namespace ergotune
