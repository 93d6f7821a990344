// The result of a run as one JSON document: `tune --json`, the C++ API and Python's Result are views of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The version of the document, raised when a key changes its meaning or goes.
inline constexpr int kResultDocumentVersion = 1;

/// Problem, device, objective, winner with its certainty, default, the best rows, counts, importance, notes.
nlohmann::ordered_json result_document(const PreparedSession& prepared, const SessionResult& result);

}  // namespace ergotune
