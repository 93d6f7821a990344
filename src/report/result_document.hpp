// The result of a run as one JSON document: `tune --json`, the C++ API and Python's Result are views of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "search/ranking.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The version of the document, raised when a key changes its meaning or goes.
inline constexpr int kResultDocumentVersion = 1;

/// Problem, device, objective, winner with its certainty, default, the best rows, counts, importance, notes.
nlohmann::ordered_json result_document(const PreparedSession& prepared, const SessionResult& result);

nlohmann::ordered_json unconfirmed_document(const Unconfirmed& result);
nlohmann::ordered_json repeats_document(const Repeats& repeats);
/// Why this result reads better than the confirmed winner and is behind it all the same; nullopt where it does not.
std::optional<Unconfirmed> unconfirmed_behind(const PreparedSession& prepared, const SessionResult& result,
                                              const ConfigurationResult& entry);
/// That the best clock lies at the end of the range that a model suggested; empty where it does not.
std::string note_of_model_edge(const PreparedSession& prepared, const SessionResult& result);

}  // namespace ergotune
