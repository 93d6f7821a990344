// The agent of a node: measures on its devices for a session at the other end of a pipe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/process/companion.hpp"

namespace ergotune {

struct AgentOptions {
  /// Descriptors of the pipe. The agent owns them.
  int in = 0, out = 1;
  /// The program's version, and the node's name; empty: SLURMD_NODENAME, else the host's.
  std::string program, node;
  /// Description of the devices here, as a JSON document.
  std::function<std::string()> list_devices;
  /// What an Accompany message asks for.
  std::function<std::unique_ptr<Companion>(const std::string& what)> accompany;
  /// Set when the agent has to go: it hands back what it has not measured, puts clocks back, and returns.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Serves one session until it stops, its pipe ends, or nothing came from it for a long time. Clocks and
/// limits are put back when it returns. Returns the exit code.
int run_agent(const AgentOptions& options);

}  // namespace ergotune
