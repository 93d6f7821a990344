// The document of `devices`, which node agents return as well.
#pragma once

#include <nlohmann/json.hpp>

namespace ergotune::cli {

/// All devices of this machine with their sensors and controls, and why others are missing.
nlohmann::ordered_json devices_document();

/// Requests the devices of nodes: an array with one object per node: "node", "worker", and its devices document, or
/// "trouble". `seconds`: time limit.
using NodeListing = nlohmann::ordered_json (*)(const std::vector<std::string>& commands, const std::string& nodes,
                                               double seconds);
/// Set by the extension that implements nodes; without it `devices` rejects --node-command and --nodes.
void set_node_listing(NodeListing listing);

}  // namespace ergotune::cli
