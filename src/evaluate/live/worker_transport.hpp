// How workers are started and reached: today as child processes with a socket pair; any command that gives a pipe would
// do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/process/transport.hpp"
#include "evaluate/live/worker_protocol.hpp"

namespace ergotune {

using WorkerTransport = Transport<protocol::Message>;

/// Starts a worker and sends it its setup. Throws Error when it cannot be started.
using StartWorker = std::function<std::unique_ptr<WorkerTransport>(const protocol::Setup&)>;

/// Workers that are children of this process: `command` gets "--descriptor N --log N" appended, and calls run_worker().
StartWorker start_children(std::vector<std::string> command);

/// A worker's whole life: serves the session at the other end of `descriptor` until it ends. `log` (or -1) becomes its
/// standard error; its standard output leads nowhere, so that a kernel that prints spoils no document.
int run_worker(int descriptor, int log);

}  // namespace ergotune
