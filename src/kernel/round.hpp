// One iteration of a problem's workload for one configuration: unrolls loops, tracks swapped buffers, assigns launches
// to queues.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

struct Kernel;
struct Problem;

/// Maps names of buffers to the buffers that they refer to; a missing name refers to the buffer of the same name.
using BufferNames = std::map<std::string, std::string>;

struct IterationLaunch {
  std::size_t kernel = 0;    ///< index in Problem::kernels
  std::size_t launches = 1;  ///< number of launches back to back; 0 does not occur
  std::size_t queue = 0;     ///< 0: the main queue
  /// Increases where queues fork and join: launches of one section run concurrently, sections run one after the other.
  std::size_t section = 0;
  /// Number of the branch of a concurrent step, from 1 in the written order; 0: not in a branch.
  std::size_t branch = 0;
};

struct IterationPlan {
  std::size_t launches = 0;          ///< total number of single launches
  std::vector<QueueOptions> queues;  ///< options of the queues other than the main one
  BufferNames names;                 ///< at the end of the iteration
};

/// Visits the launches of an iteration in the order in which they are queued. `visit` receives each launch with the
/// scope for its kernel's expressions and the buffers that its arguments' names refer to. Throws UserError if an
/// expression cannot be evaluated or if the iteration does not end.
IterationPlan visit_launches(
    const Problem& problem, const Constants& constants, const Configuration& configuration,
    const std::function<void(const IterationLaunch&, const Scope&, const BufferNames&)>& visit);

/// Returns the names of all loop variables of the workload.
std::set<std::string> loop_variables(const Problem& problem);
/// Returns the kernels in the order of their first launches.
std::vector<std::size_t> first_order(const Problem& problem);
/// Returns the pairs of buffers that a swap step exchanges.
std::vector<std::pair<std::string, std::string>> swapped_buffers(const Problem& problem);
/// Returns messages about declared race conditions: concurrent kernels of which one writes a buffer that another one
/// uses.
std::vector<std::string> race_notes(const Problem& problem);

/// Returns `kernel "blur": ` followed by the message; for a kernel without a name, the message alone.
std::string with_kernel_name(const Kernel& kernel, const std::string& message);

}  // namespace ergotune
