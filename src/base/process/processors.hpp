// How many processors there are for this process.
#pragma once

namespace ergotune {

/// Processors that this process may run on: all of the machine's, fewer in a batch job, a container or under taskset
/// (std::thread::hardware_concurrency counts what is online). At least 1.
unsigned usable_processors();

}  // namespace ergotune
