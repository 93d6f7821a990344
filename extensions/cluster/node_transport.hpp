// Starts a node agent and connects to it, by any command that provides a pipe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/process/transport.hpp"
#include "cluster/agent_protocol.hpp"

namespace ergotune {

using NodeTransport = Transport<agents::Message>;
using StartNode = std::function<std::unique_ptr<NodeTransport>()>;

/// Returns a function that runs a command with /bin/sh. {} in it is replaced by "PROGRAM agent"; a command without {}
/// has to start the agent itself. Its standard input and output are the pipe. The function throws Error if it cannot be
/// started.
StartNode start_by_command(const std::string& command, const std::string& program);

/// The commands of a --nodes value: "slurm" (all nodes of the allocation in which this process runs), or a file with
/// one command per line, without empty lines and lines that begin with #. Throws UserError if there are none.
std::vector<std::string> node_commands(const std::string& nodes);
/// Expands a list of hosts in Slurm's notation: "n[1-3,07],m5" -> n1, n2, n3, n07, m5. Throws UserError if it is
/// malformed.
std::vector<std::string> expand_hosts(const std::string& list);

}  // namespace ergotune
