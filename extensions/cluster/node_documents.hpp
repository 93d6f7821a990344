// Questions to the agents of nodes that a document answers: which devices there are, what a program has needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/node_transport.hpp"

namespace ergotune {

/// A node with its document, or why there is none.
struct NodeDocument {
  std::string command, node, document, trouble;
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
