#include "store/formats/exported_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "store/formats/json_values.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

void read(const Json& json, Recording& recording) {
  recording.name = json.value("problem", recording.name);
  const std::string default_key = json.value("default", "");
  for (std::size_t row = 0; row < recording.size() && !default_key.empty(); ++row)
    if (cache_key(recording.configuration(row)) == default_key) set_default(recording, recording.configuration(row));
  if (!json.contains("objective")) return;
  recording.objective.text = json.at("objective").get<std::string>();
  recording.objective.direction = json.value("direction", "min") == "max" ? Direction::maximise : Direction::minimise;
  if (!json.contains("confirmed")) return;
  std::map<std::string, std::size_t> rows;
  for (std::size_t row = 0; row < recording.size(); ++row)
    if (usable(recording.statuses[row])) rows.emplace(cache_key(recording.configuration(row)), row);
  for (const auto& [key, entry] : json.at("confirmed").items()) {
    const auto row = rows.find(key);
    if (row == rows.end()) continue;
    ExportedConfirmation confirmation{entry.value("repeats", 1), {}, {}};
    if (entry.contains("searched")) confirmation.searched = entry.at("searched").get<double>();
    if (entry.contains("probability_best"))
      confirmation.certainty = Certainty{entry.at("probability_best"), entry.value("expected_loss", 0.0)};
    add_confirmation(recording, row->second, confirmation);
  }
}

}  // namespace

std::string cache_key(const Configuration& configuration) {
  std::string key;
  for (const Value& value : configuration) key.append(key.empty() ? "" : ",").append(value.to_string());
  return key;
}

std::optional<ObjectiveSpec> exported_objective(const ResultSet& results) {
  const bool is_value = std::ranges::any_of(
      results.rows, [&](const StoredRow& row) { return row.measurement.value(results.goal.text).has_value(); });
  return is_value ? std::optional(results.goal) : std::nullopt;
}

std::optional<ExportedConfirmation> exported_confirmation(const StoredRow& row,
                                                          const std::optional<ObjectiveSpec>& objective) {
  if (!objective || row.rounds == 0 || row.confirmed_for != objective) return std::nullopt;
  return ExportedConfirmation{row.rounds, row.searched ? row.searched->value(objective->text) : std::nullopt,
                              row.certainty};
}

void add_confirmation(Recording& recording, std::size_t row, const ExportedConfirmation& confirmation) {
  ConfirmedRow& added = recording.confirmations[row];
  added.objective = recording.objective;
  added.repeats = confirmation.repeats;
  added.certainty = confirmation.certainty;
  if (!confirmation.searched) return;
  Quantity& searched = added.searched.emplace().quantities[recording.objective.text];
  searched.value = *confirmation.searched;
  searched.n = 1;
  searched.method = "recorded";
  searched.provenance = recording.provenance;
}

void set_default(Recording& recording, const Configuration& configuration) {
  for (std::size_t p = 0; p < recording.parameters.size(); ++p)
    recording.parameters[p].default_value = configuration[p];
}

Json session_json(const ResultSet& results) {
  Json json{{"problem", results.problem}};
  for (const StoredRow& row : results.rows)
    if (is_default(results.parameters, row.configuration)) json["default"] = cache_key(row.configuration);
  const auto objective = exported_objective(results);
  if (!objective) return json;
  json["objective"] = objective->text;
  json["direction"] = objective->direction == Direction::maximise ? "max" : "min";
  for (const StoredRow& row : results.rows) {
    const auto confirmation = exported_confirmation(row, objective);
    if (!confirmation) continue;
    Json& entry = json["confirmed"][cache_key(row.configuration)] = {{"repeats", confirmation->repeats}};
    if (confirmation->searched) entry["searched"] = *confirmation->searched;
    if (!confirmation->certainty) continue;
    entry["probability_best"] = confirmation->certainty->probability_best;
    entry["expected_loss"] = confirmation->certainty->expected_loss;
  }
  return json;
}

bool has_other_degrees(const Quantity& quantity) {
  return quantity.standard_error > 0 && quantity.degrees != static_cast<double>(quantity.n) - 1;
}

Json certainty_json(const Quantity& quantity) {
  Json json{{"n", quantity.n}};
  if (quantity.standard_error != 0) json["standard_error"] = number_json(quantity.standard_error);
  if (has_other_degrees(quantity)) json["degrees"] = quantity.degrees;
  return json;
}

void read_session_json(const Json& json, Recording& recording) {
  if (!json.is_object()) return;
  try {
    read(json, recording);
  } catch (const Json::exception& error) {
    recording.warnings.push_back(
        fmt::format("\"ergotune\", which states objective and confirmation, is damaged: {}", error.what()));
  }
}

}  // namespace ergotune
