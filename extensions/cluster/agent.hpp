// The node agent: measures on a node's devices for a session at the other end of a pipe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/process/companion.hpp"

namespace ergotune {

struct AgentOptions {
  /// Descriptors of the pipe, which the agent closes.
  int in = 0, out = 1;
  /// The program's version, and the node's name; empty: SLURMD_NODENAME, else the host name.
  std::string program, node;
  /// Returns the document of the node's devices as JSON.
  std::function<std::string()> list_devices;
  /// What an Accompany message asks for.
  std::function<std::unique_ptr<Companion>(const std::string& what)> accompany;
  /// Set when the agent has to go: it hands back what it has not measured, puts clocks back, and returns.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Serves one session until it ends, its pipe closes, or it has been silent for a long time. Restores clocks and limits
/// before it returns. Returns the exit code.
int run_agent(const AgentOptions& options);

}  // namespace ergotune
