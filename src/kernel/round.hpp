// One round of a problem's workload for one configuration: its loops unrolled, its buffers swapped, its launches placed
// on queues.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

/// What names of buffers stand for; those that are not in it stand for themselves.
using BufferNames = std::map<std::string, std::string>;

struct IterationLaunch {
  std::size_t kernel = 0;    ///< position in Problem::kernels
  std::size_t launches = 1;  ///< back to back; 0 is left out
  std::size_t queue = 0;     ///< 0: the main one
  /// Counts up where queues fork and where they join: launches of one section run side by side, sections one after the
  /// other.
  std::size_t section = 0;
  /// Of the concurrent step that it is in: counted from 1 as they are written; 0: in none.
  std::size_t branch = 0;
};

struct IterationPlan {
  std::size_t launches = 0;          ///< single ones
  std::vector<QueueOptions> queues;  ///< those beside the main one
  BufferNames names;                 ///< at the end of the round
};

/// Walks a round in the order in which its launches are queued. `visit` sees each with the scope of its kernel's
/// expressions and what its arguments' names stand for. Throws UserError where an expression has no value, and for a
/// round that does not end.
IterationPlan walk_iteration(
    const Problem& problem, const Constants& constants, const Configuration& configuration,
    const std::function<void(const IterationLaunch&, const Scope&, const BufferNames&)>& visit);

/// Variables of the workload's loops, wherever they stand.
std::set<std::string> loop_variables(const Problem& problem);
/// Kernels in the order in which they first run.
std::vector<std::size_t> first_order(const Problem& problem);
/// Buffers that are swapped somewhere, in pairs.
std::vector<std::pair<std::string, std::string>> swapped_buffers(const Problem& problem);
/// What is declared such that the order of launches decides what comes out: kernels that run side by side, one of which
/// writes what the other uses. In words, for the user.
std::vector<std::string> race_notes(const Problem& problem);

/// `kernel "blur": ` before words about a kernel that has a name.
std::string about_kernel(const Kernel& kernel, const std::string& message);

}  // namespace ergotune
