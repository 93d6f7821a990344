// What `devices` tells, as a document: also what a node's agent is asked for.
#pragma once

#include <nlohmann/json.hpp>

namespace ergotune::cli {

/// Every device here, with sensors and controls, and what is missing.
nlohmann::ordered_json devices_document();

}  // namespace ergotune::cli
