// The node agent: measures on a node's devices for a session at the other end of a pipe.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace ergotune {

struct AgentOptions {
  /// Descriptors of the pipe, which the agent closes.
  int in = 0, out = 1;
  /// The program's version, and the node's name; empty: SLURMD_NODENAME, else the host name.
  std::string program, node;
  /// Returns the document of the node's devices as JSON.
  std::function<std::string()> list_devices;
  /// When set, the agent hands back the requests that it has not measured, restores clocks, and returns.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Serves one session until it ends, its pipe closes, or it has been silent for a long time. Restores clocks and limits
/// before it returns. Returns the exit code.
int run_agent(const AgentOptions& options);

}  // namespace ergotune
