// Occupancy of a kernel's compiled code.
#pragma once

#include <optional>
#include <string>

#include "device/device.hpp"

namespace ergotune {

struct Occupancy {
  int blocks = 0;    ///< number of resident blocks per SM
  double share = 0;  ///< share of the threads that an SM can hold, 0 to 1
  double need = 0;   ///< largest share that a block takes of what a block or an SM may have; above 1 it is refused
  std::string method;
};

/// Requirements of one thread block (Guerreiro et al., PDP 2015, equations 1 to 5).
struct BlockNeeds {
  double threads = 0, registers = 0, shared_bytes = 0;  ///< registers: per thread
};

/// Computes equations 1 to 5 with the device's properties; registers and shared memory are rounded up to their
/// allocation units (space/expression/expression_tree.hpp, as for occupancy() in an expression). Returns nullopt if the
/// device does not report the resources of an SM, or has no limits.
std::optional<Occupancy> occupancy_of(const BlockNeeds& needs, const Constants& properties);

/// Computes the occupancy of compiled code; uses the driver's number of blocks if it is given.
std::optional<Occupancy> occupancy_of(const LoadedKernel::Resources& resources, const LaunchGeometry& geometry,
                                      const Constants& properties, std::optional<int> resident_blocks);

}  // namespace ergotune
