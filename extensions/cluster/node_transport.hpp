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

/// Ends the agent. How it ended, with what it printed last.
std::string ended_with(NodeTransport& transport);

/// The commands that --nodes stands for: "slurm" (all nodes of the allocation that this process is in), or a file with
/// a command in each line, or a hostfile of Open MPI ("n1 slots=4", reached by ssh); empty lines and those that begin
/// with # are left out. Throws UserError.
std::vector<std::string> node_commands(const std::string& nodes);
/// Expands a list of hosts in Slurm's notation: "n[1-3,07],m5" -> n1, n2, n3, n07, m5. Throws UserError if it is
/// malformed.
std::vector<std::string> expand_hosts(const std::string& list);

}  // namespace ergotune
