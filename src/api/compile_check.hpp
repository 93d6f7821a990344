// Checks whether configurations compile, also for a GPU that is not in this machine. `ergotune space --compile`,
// Python.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

/// A device by its id, or by its profile ("sim:h100"), for which no driver is needed.
struct DeviceLimits {
  std::string name;      ///< empty: the problem asks for no device's limits
  Constants properties;  ///< what restrictions see
};
/// `device` empty: the device that tune would use, where the problem asks for its limits. Throws UserError.
DeviceLimits limits_of(const Problem& problem, const std::string& device);

struct CompiledConfiguration {
  ConfigurationIndex index = 0;
  std::string message;  ///< the compiler's message; empty: it compiles
  /// The device has the threads and the shared memory of a block, and the blocks; __launch_bounds__ permits the
  /// threads.
  bool fits = true;
};

struct CompileCheck {
  DeviceInfo device;
  std::vector<CompiledConfiguration> configurations;
  std::vector<std::string> notes;  ///< about the sources (source_notes)
  bool any() const;                ///< whether one compiles
};

/// Compiles all kernels of the default configuration and of random ones, `count` in all, and the reference once, which
/// runs on the host where it is a host function. For `device`: empty, the best of this machine; "sim:PROFILE", an
/// NVIDIA GPU that needs not be here. `progress` is called after each. Throws UserError if no compiler can compile the
/// problem for it.
CompileCheck check_compiling(const Problem& problem, const SearchSpace& space, const std::string& device,
                             const DeviceLimits& limits, std::uint64_t count, std::uint64_t seed,
                             const std::function<void(const CompileCheck& so_far, std::uint64_t all)>& progress = {});
/// Of each configuration: "configuration", "compiles", "fits", "message".
nlohmann::ordered_json compiled_document(const SearchSpace& space, const CompileCheck& check);

}  // namespace ergotune
