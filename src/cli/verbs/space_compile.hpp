// ergotune space --compile: checks whether configurations compile, also for a GPU that is not in this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune {
struct Problem;
}  // namespace ergotune

namespace ergotune::cli {

struct CompileTarget {
  DeviceInfo device;
  std::unique_ptr<Compiler> compiler;
};

/// The device with this id, or the best device of this machine if it is empty. compile_target_of_profile(): an NVIDIA
/// GPU that is not in this machine, from the properties of its profile. Throws UserError if no compiler can compile the
/// problem for it.
CompileTarget compile_target(const Problem& problem, const std::string& device);
CompileTarget compile_target_of_profile(const Problem& problem, const std::string& name, const Constants& properties);

struct CompiledConfiguration {
  ConfigurationIndex index = 0;
  std::string message;  ///< the compiler's message; empty: it compiles
};

/// Compiles all kernels of each configuration, and a reference kernel once; returns one result per configuration.
std::vector<CompiledConfiguration> compile_configurations(const Problem& problem, const SearchSpace& space,
                                                          const Constants& constants, CompileTarget& target,
                                                          const std::vector<ConfigurationIndex>& configurations);

}  // namespace ergotune::cli
