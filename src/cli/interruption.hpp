// Ctrl-C, kill and a lost terminal end a verb cleanly, with what it has.
#pragma once

#include <atomic>

namespace ergotune::cli {

/// Notes SIGINT, SIGTERM and SIGHUP from now on; the flag that they set. A second one ends the process at
/// once, and 30 s after the first it ends whatever it waits for.
const std::atomic<bool>* interruption();

}  // namespace ergotune::cli
