// What of a problem, a kernel and a device wisdom is filed under.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune {

/// What an application calls the kernel: its name in a problem of several; else its function, or the problem's name
/// where the function is a template's instance.
std::string wisdom_name(const Problem& problem, const Kernel& kernel);

/// The constants that say how large the work is: whole numbers that the launch names, dimension by dimension, then
/// those that buffers' lengths name, then those that the kernel is given (a radius, a number of steps).
std::vector<std::string> size_names(const Problem& problem, const Kernel& kernel);
/// Their values; of a kernel that names none the work items, where they are written as numbers.
std::vector<std::int64_t> problem_size(const Problem& problem, const Kernel& kernel, const Constants& constants);

/// Scalars that are nothing but a constant: position in Kernel::arguments -> the constant's name. A launch says with
/// them what the constants are.
std::map<std::size_t, std::string> bound_constants(const Problem& problem, const Kernel& kernel);

/// Every word of what the kernel's code is made of on a kind of device (source, included files, function, options): a
/// constant that is none of them is no macro that matters.
std::set<std::string, std::less<>> code_description(const Kernel& kernel, const std::string& backend);

/// The names that a launch's grid, blocks, shared and local memory, and the arguments that it passes follow from.
std::set<std::string, std::less<>> launch_names(const Problem& problem, const Kernel& kernel);

/// The kind of device whose source is meant: of a simulated or replayed one the first that the kernel has a source for;
/// empty where it has none for it.
std::string source_backend(const Kernel& kernel, const std::string& backend);
/// Hash of all that the kernel's code is made of on a kind of device: source without comments, included files,
/// function, options, types of arguments, and constants other than sizes and those that a launch says. Throws UserError
/// where there is no source for it.
std::string source_hash(const Problem& problem, const Kernel& kernel, const std::string& backend,
                        const Constants& constants);
/// Hash of parameters and restrictions, however they are written.
std::string space_hash(const Problem& problem);

/// A record's values in the order of Problem::parameters; a parameter that it does not know takes its default. Throws
/// UserError for a parameter or a value that the problem does not have, and where a restriction is not met.
Configuration wisdom_configuration(const Problem& problem, const Constants& constants, const WisdomRecord& record);

/// The same, of a launch that `kernel` can make: Throws UserError also where grid or block is none, and where a block
/// has more threads than `constants` (device.max_threads_per_block) say that the device takes.
Configuration launchable_configuration(const Problem& problem, const Kernel& kernel, const Constants& constants,
                                       const WisdomRecord& record);
/// What runs where no record does: every parameter's default; where these do not meet the restrictions what the space
/// begins with. Throws UserError where nothing meets them.
Configuration default_configuration(const Problem& problem, const Constants& constants);

WisdomDevice wisdom_device(const DeviceInfo& info);
/// What a shipped profile knows of devices of this name ("device.max_threads_per_block" ...); empty where there is
/// none.
Constants known_properties(const std::string& device);
/// From less: name, "cuda" ..., device properties ("device.compute_capability" ...); without any what a shipped profile
/// knows of the name.
WisdomDevice wisdom_device(const std::string& name, const std::string& backend, const Constants& properties);

}  // namespace ergotune
