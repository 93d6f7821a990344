// Functions shared by the verbs of the command.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace ergotune::cli {

/// Each verb is defined in verbs/<verb>_command.cpp and added by main.cpp. Its callback may throw UserError (exit code
/// 2) or Error (exit code 1), which main prints on standard error. A run that ends without a result (nothing worked, or
/// it was interrupted first) throws Exit{kNoAnswer}.
constexpr int kNoAnswer = 1;

/// Prints the JSON document of a verb called with --json on standard output.
void print_json(const nlohmann::ordered_json& document);

/// The store that verbs read if none is given.
inline constexpr const char* kDefaultStore = "ergotune.db";

/// Prints warnings about the content of `file` (cut off, rows left out) on standard error.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings);

/// Adds --json to a verb.
Option add_json_option(Verb verb, bool& json);

}  // namespace ergotune::cli
