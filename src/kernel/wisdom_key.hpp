// The properties of a problem, a kernel and a device by which wisdom is stored and found.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune {

struct Kernel;
struct Problem;

/// Returns the name by which applications refer to the kernel: its name in a problem of several kernels; else its
/// function, or the problem's name if the function is an instance of a template.
std::string wisdom_name(const Problem& problem, const Kernel& kernel);

/// Returns the names of the constants that determine the problem size: integers used by the launch geometry, dimension
/// by dimension, then those used by the lengths of buffers, then those passed to the kernel (a radius, a number of
/// steps).
std::vector<std::string> size_names(const Problem& problem, const Kernel& kernel);
/// Returns their values; if there are none, the number of work items if the launch gives it as numbers.
std::vector<std::int64_t> problem_size(const Problem& problem, const Kernel& kernel, const Constants& constants);

/// Returns the scalar arguments whose value is just a constant: index in Kernel::arguments -> name of the constant. A
/// launch determines the values of these constants.
std::map<std::size_t, std::string> bound_constants(const Problem& problem, const Kernel& kernel);

/// Returns all identifiers in what determines the kernel's code for a backend (source, included files, function,
/// options). A constant that is not among them does not affect the code.
std::set<std::string, std::less<>> code_description(const Kernel& kernel, const std::string& backend);

/// Returns the names on which grid, block, shared and local memory, and the passed arguments of a launch depend.
std::set<std::string, std::less<>> launch_names(const Problem& problem, const Kernel& kernel);

/// Returns the backend whose source is used; for a simulated or replayed device, the first one for which the kernel has
/// a source; empty if there is none.
std::string source_backend(const Kernel& kernel, const std::string& backend);
/// Returns a hash of everything that determines the kernel's code for a backend: source without comments, included
/// files, function, options, types of arguments, and constants except for sizes and those determined by a launch.
/// Throws UserError if there is no source.
std::string source_hash(const Problem& problem, const Kernel& kernel, const std::string& backend,
                        const Constants& constants);
/// Returns a hash of parameters and restrictions that does not depend on how they are written.
std::string space_hash(const Problem& problem);

/// Returns a record's values in the order of Problem::parameters; parameters missing in the record take their defaults.
/// Throws UserError for a parameter or value that the problem does not have, and for a violated restriction.
Configuration wisdom_configuration(const Problem& problem, const Constants& constants, const WisdomRecord& record);

/// Does the same, and checks that `kernel` can be launched: also throws UserError for an empty grid or block, and for a
/// block with more threads than device.max_threads_per_block in `constants`.
Configuration launchable_configuration(const Problem& problem, const Kernel& kernel, const Constants& constants,
                                       const WisdomRecord& record);
/// Returns the configuration for launches without a matching record: all defaults, or the first valid configuration if
/// the restrictions exclude it. Throws UserError if no configuration is valid.
Configuration default_configuration(const Problem& problem, const Constants& constants);

WisdomDevice wisdom_device(const DeviceInfo& info);
/// Returns the properties that a shipped profile has for devices of this name ("device.max_threads_per_block" ...);
/// empty if there is none.
Constants known_properties(const std::string& device);
/// Creates a WisdomDevice from a name, a backend ("cuda" ...) and properties ("device.compute_capability" ...); without
/// properties, uses those of a shipped profile with this name.
WisdomDevice wisdom_device(const std::string& name, const std::string& backend, const Constants& properties);

}  // namespace ergotune
