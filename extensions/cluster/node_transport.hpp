// The way to a node's agent, and how it was started: by any command that gives a pipe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/agent_pipe.hpp"

namespace ergotune {

class NodeTransport {
 public:
  virtual ~NodeTransport() = default;
  virtual agents::Pipe& pipe() = 0;
  /// Ends what was started here, where it still lives, and says how it ended, with its last words.
  virtual std::string end() = 0;
};

using StartNode = std::function<std::unique_ptr<NodeTransport>()>;

/// A command for /bin/sh. {} in it stands for "PROGRAM agent"; one without {} starts the agent itself. Its standard
/// input and output are the pipe. Throws Error where it cannot be started.
StartNode start_by_command(const std::string& command, const std::string& program);

/// What --nodes says, as commands: "slurm" (all nodes of the allocation that this process is in), or a file with a
/// command in each line, empty lines and those that begin with # left out. Throws UserError.
std::vector<std::string> node_commands(const std::string& nodes);
/// "n[1-3,07],m5" as Slurm writes lists of hosts: n1, n2, n3, n07, m5. Throws UserError for what is none.
std::vector<std::string> expand_hosts(const std::string& list);

}  // namespace ergotune
