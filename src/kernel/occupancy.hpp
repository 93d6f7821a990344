// How much of a multiprocessor a kernel's compiled code can fill.
#pragma once

#include <optional>
#include <string>

#include "device/device.hpp"

namespace ergotune {

struct Occupancy {
  int blocks = 0;    ///< resident on a multiprocessor at a time
  double share = 0;  ///< of the threads that it can hold, 0 to 1
  std::string method;
};

/// What one thread block asks for, and what a multiprocessor has (Guerreiro et al., PDP 2015, equations 1 to 5).
struct BlockNeeds {
  double threads = 0, registers = 0, shared_bytes = 0;  ///< registers: of a thread
};

/// Equations 1 to 5 with the device's properties; registers and shared memory are rounded up to the units they are
/// given out in (space/expression/expression_tree.hpp: the same as occupancy() in an expression). nullopt where the
/// device does not tell what a multiprocessor has, or has no limit.
std::optional<Occupancy> occupancy_of(const BlockNeeds& needs, const Constants& properties);

/// The same for compiled code; the driver's own number of the blocks, where there is one, holds.
std::optional<Occupancy> occupancy_of(const LoadedKernel::Resources& resources, const LaunchGeometry& geometry,
                                      const Constants& properties, std::optional<int> resident_blocks);

}  // namespace ergotune
