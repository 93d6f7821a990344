// What the verbs of the command share.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace ergotune::cli {

/// Each verb lives in <verb>_command.cpp and adds itself to the command here. Its callback may throw
/// UserError (exit code 2) or Error (exit code 1); main turns them into one clear message on standard error.
/// A run that ends without an answer (nothing worked, or it was interrupted before) throws Exit{kNoAnswer}.
constexpr int kNoAnswer = 1;
void add_init_command(Verb app);
void add_schema_command(Verb app);
void add_doctor_command(Verb app);
void add_devices_command(Verb app);
void add_calibrate_command(Verb app);
void add_clocks_command(Verb app);
void add_space_command(Verb app);
void add_tune_command(Verb app);
void add_measure_command(Verb app);
void add_show_command(Verb app);
void add_report_command(Verb app);
void add_analyse_command(Verb app);
void add_model_command(Verb app);
void add_trace_command(Verb app);
void add_import_command(Verb app);
void add_export_command(Verb app);
void add_wisdom_command(Verb app);
void add_worker_command(Verb app);
void add_compare_command(Verb app);

/// The verbs of the extensions; CMake writes its definition.
void add_extension_verbs(Verb app);

/// The one JSON document of a verb called with --json, on standard output.
void print_json(const nlohmann::ordered_json& document);

/// What every verb that reads results calls its default.
inline constexpr const char* kDefaultStore = "ergotune.db";

/// Writes what was found wrong while `file` was read (it is cut off, rows are left out) to standard error.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings);

/// Adds --json to a verb.
Option add_json_option(Verb verb, bool& json);

}  // namespace ergotune::cli
