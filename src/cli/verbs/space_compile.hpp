// ergotune space --compile: whether configurations compile, also for a GPU that is not here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"

namespace ergotune::cli {

struct CompileTarget {
  DeviceInfo device;
  std::unique_ptr<Compiler> compiler;
};

/// Of the device with this id, or of the best here; or of an NVIDIA GPU that is not here, by the properties of its
/// profile. Throws UserError where nothing can compile the problem for it.
CompileTarget compile_target(const Problem& problem, const std::string& device);
CompileTarget compile_target_of_profile(const Problem& problem, const std::string& name, const Constants& properties);

struct CompiledConfiguration {
  ConfigurationIndex index = 0;
  std::string message;  ///< the compiler's; empty: it compiles
};

/// Compiles every kernel, and a reference kernel once: what comes of it for each configuration.
std::vector<CompiledConfiguration> compile_configurations(const Problem& problem, const SearchSpace& space,
                                                          const Constants& constants, CompileTarget& target,
                                                          const std::vector<ConfigurationIndex>& configurations);

}  // namespace ergotune::cli
