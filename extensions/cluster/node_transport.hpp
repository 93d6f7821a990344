// How a node's agent is started and reached: by any command that gives a pipe.
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

/// A command for /bin/sh. {} in it stands for "PROGRAM agent"; one without {} starts the agent itself. Its standard
/// input and output are the pipe. Throws Error where it cannot be started.
StartNode start_by_command(const std::string& command, const std::string& program);

/// Ends the agent. How it ended, with what it printed last.
std::string ended_with(NodeTransport& transport);

/// The commands that --nodes stands for: "slurm" (all nodes of the allocation that this process is in), or a file with
/// a command in each line, empty lines and those that begin with # left out. Throws UserError.
std::vector<std::string> node_commands(const std::string& nodes);
/// "n[1-3,07],m5" as Slurm writes lists of hosts: n1, n2, n3, n07, m5. Throws UserError for what is none.
std::vector<std::string> expand_hosts(const std::string& list);

}  // namespace ergotune
