// What the verbs of the command share.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace ergotune::cli {

/// Each verb lives in verbs/<verb>_command.cpp, and main.cpp adds it to the command. Its callback may throw
/// UserError (exit code 2) or Error (exit code 1); main turns them into one clear message on standard error.
/// A run that ends without an answer (nothing worked, or it was interrupted before) throws Exit{kNoAnswer}.
constexpr int kNoAnswer = 1;

/// The one JSON document of a verb called with --json, on standard output.
void print_json(const nlohmann::ordered_json& document);

/// What every verb that reads results calls its default.
inline constexpr const char* kDefaultStore = "ergotune.db";

/// Writes what was found wrong while `file` was read (it is cut off, rows are left out) to standard error.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings);

/// Adds --json to a verb.
Option add_json_option(Verb verb, bool& json);

}  // namespace ergotune::cli
