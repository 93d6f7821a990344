// Registers nodes as a kind of target.
#include "tune/target/target_parts.hpp"

namespace ergotune {

/// Opens the nodes named by options.run.node_commands and options.run.nodes.
void open_nodes(Target& target, const SetupOptions& options);

void register_cluster() {
  register_target({[](const Problem& problem, const SetupOptions& options) {
                     return !problem.program && (!options.run.node_commands.empty() || !options.run.nodes.empty()) &&
                            !options.run.device.starts_with("replay:");
                   },
                   open_nodes});
}

}  // namespace ergotune
