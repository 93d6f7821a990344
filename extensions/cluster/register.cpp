// Adds nodes as a kind of target.
#include "tune/target/target_parts.hpp"

namespace ergotune {

/// Opens the nodes that options.live.node_commands and nodes name.
void open_nodes(Target& target, const TargetOptions& options);

void register_cluster() {
  register_target({[](const Problem& problem, const TargetOptions& options) {
                     return !problem.program && (!options.live.node_commands.empty() || !options.live.nodes.empty()) &&
                            !options.device.starts_with("replay:");
                   },
                   open_nodes});
}

}  // namespace ergotune
