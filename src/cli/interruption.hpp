// Lets a verb end cleanly with its results so far on Ctrl-C, kill or the loss of the terminal.
#pragma once

#include <atomic>

namespace ergotune::cli {

/// Installs handlers for SIGINT, SIGTERM and SIGHUP and returns the flag that they set. A second signal ends the
/// process at once; 30 s after the first it ends in any case.
const std::atomic<bool>* interruption();

}  // namespace ergotune::cli
