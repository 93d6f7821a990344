// What `tune` says at the end.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/progress.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// The document of `tune --json`.
nlohmann::ordered_json result_document(const PreparedSession& prepared, const SessionResult& result);
/// The answer for people, on standard output.
void print_answer(const PreparedSession& prepared, const SessionResult& result, const std::string& file,
                  std::size_t top);

}  // namespace ergotune::cli
