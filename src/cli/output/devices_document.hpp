// What `devices` tells, as a document: also what a node's agent is requested.
#pragma once

#include <nlohmann/json.hpp>

namespace ergotune::cli {

/// Every device here, with sensors and controls, and what is missing.
nlohmann::ordered_json devices_document();

/// Asks nodes for their devices: an array with an object per node: "node", "worker", and its devices document, or
/// "trouble".
using NodeListing = nlohmann::ordered_json (*)(const std::vector<std::string>& commands, const std::string& nodes,
                                               double seconds);
/// Set by the extension that knows nodes; without it `devices` refuses --node-command and --nodes.
void set_node_listing(NodeListing listing);

}  // namespace ergotune::cli
