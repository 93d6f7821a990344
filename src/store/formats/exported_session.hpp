// What exported files state of a session besides its rows, so that a file that is read again has the session's winner.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "ergotune/objective.hpp"
#include "store/result_set.hpp"

namespace ergotune {

/// A configuration as Kernel Tuner's caches name it: its values in Python's notation, with commas.
std::string cache_key(const Configuration& configuration);

/// The objective of the session if it is a quantity or metric of its rows; nullopt for expressions, whose names need
/// not be in the file.
std::optional<ObjectiveSpec> exported_objective(const ResultSet& results);

/// A row that was confirmed for the exported objective: repeats, the objective's value in the search, and the certainty
/// of the winner.
struct ExportedConfirmation {
  int repeats = 0;
  std::optional<double> searched;
  std::optional<Certainty> certainty;
};
std::optional<ExportedConfirmation> exported_confirmation(const StoredRow& row,
                                                          const std::optional<ObjectiveSpec>& objective);
/// Sets it for a row of a recording whose objective is known.
void add_confirmation(Recording& recording, std::size_t row, const ExportedConfirmation& confirmation);
/// Makes a configuration the default one of a recording.
void set_default(Recording& recording, const Configuration& configuration);

/// {"problem": "fir", "default": "1024,True", "objective": "time", "direction": "min", "confirmed": {"4096,False":
/// {"repeats": 2, "searched": 0.0078, "probability_best": 0.9, "expected_loss": 0.001}}}: an object of T4 files and
/// Kernel Tuner caches, which other readers ignore. Values are in SI units.
nlohmann::ordered_json session_json(const ResultSet& results);
/// Whether the degrees of freedom differ from n - 1, which readers assume.
bool has_other_degrees(const Quantity& quantity);
/// The number of readings of a value, its standard error and, where they are not n - 1, its degrees of freedom:
/// {"n": 14, "standard_error": 4.1e-6, "degrees": 1}. An unknown error is "nan".
nlohmann::ordered_json certainty_json(const Quantity& quantity);
/// Sets these of a recording with all its rows; what the object lacks is left as it is.
void read_session_json(const nlohmann::ordered_json& json, Recording& recording);

}  // namespace ergotune
