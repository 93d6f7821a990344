// Starts workers and connects to them: as child processes with a socket pair, or through any command that provides a
// pipe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/process/transport.hpp"
#include "evaluate/live/worker_protocol.hpp"

namespace ergotune {

using WorkerTransport = Transport<protocol::Message>;

/// Starts a worker and sends it its setup. Throws Error on failure.
using StartWorker = std::function<std::unique_ptr<WorkerTransport>(const protocol::Setup&)>;

/// Starts workers as children of this process: `command` gets "--descriptor N --log N" appended and calls run_worker().
StartWorker start_children(std::vector<std::string> command);

/// Main function of a worker: serves the session at the other end of `descriptor` until it ends, and returns the exit
/// code. `log` becomes its standard error unless it is -1. Its standard output is discarded, so that printing kernels
/// do not corrupt documents.
int run_worker(int descriptor, int log);

/// In a worker: ends it with `message` as a user's mistake after `seconds`, whatever its threads do, unless this is
/// called again before; 0: it is not ended.
void limit_worker(double seconds, const std::string& message);

}  // namespace ergotune
