// Starts a node agent and connects to it, by any command that provides a pipe; and questions to agents that
// a document answers: which devices there are, what a program has needed.
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

/// A node with its document, or why there is none.
struct NodeDocument {
  std::string command, node, document, failure;
};

/// The devices of nodes (`ergotune devices --json`), in the order of the commands, as far as they answer within
/// `seconds`.
std::vector<NodeDocument> list_nodes(const std::vector<std::string>& commands, const std::string& program,
                                     double seconds);

/// Companions (base/process/companion.hpp) on several nodes that a program runs on.
class NodeCompanions {
 public:
  /// Returns when all of them are ready. Throws UserError with the name of a node that refuses, does not answer within
  /// `seconds`, or is reached by two commands.
  NodeCompanions(const std::vector<std::string>& commands, const std::string& program, const std::string& what,
                 double seconds);
  void begin();
  /// What each found, as far as they answer within `seconds`.
  std::vector<NodeDocument> end(double seconds);

 private:
  void wait_until_ready(double seconds);
  std::vector<NodeDocument> nodes_;
  std::vector<std::unique_ptr<NodeTransport>> transports_;
};

}  // namespace ergotune
