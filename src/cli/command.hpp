// Functions shared by the verbs of the command.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace ergotune::cli {

/// All devices of this machine with their sensors and controls, and why others are missing.
nlohmann::ordered_json devices_document();

/// Requests the devices of nodes: an array with one object per node: "node", "worker", and its devices document, or
/// "error". `seconds`: time limit.
using NodeListing = nlohmann::ordered_json (*)(const std::vector<std::string>& commands, const std::string& nodes,
                                               double seconds);
/// Set by the extension that implements nodes; without it `devices` rejects --node-command and --nodes.
void set_node_listing(NodeListing listing);

/// Each verb is defined in verbs/<verb>_command.cpp and added by main.cpp. Its callback may throw UserError (exit code
/// 2) or Error (exit code 1), which main prints on standard error. A run that ends without a result (nothing worked, or
/// it was interrupted first) throws Exit{kNoAnswer}.
constexpr int kNoAnswer = 1;
/// The exit code of a UserError, for a verb that prints what it found before it ends.
constexpr int kWrongInput = 2;

/// Prints the JSON document of a verb called with --json on standard output.
void print_json(const nlohmann::ordered_json& document);

/// The store that verbs read if none is given.
inline constexpr const char* kDefaultStore = "ergotune.db";

/// Prints warnings about the content of `file` (cut off, rows left out) on standard error.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings);

/// Adds --json to a verb.
Option add_json_option(Verb verb, bool& json);

}  // namespace ergotune::cli
