#include "report/comparison_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "ergotune/error.hpp"
#include "report/result_document.hpp"

namespace ergotune {
namespace {

/// "results.db:2" is session 2 of results.db, unless a file has that whole name.
std::pair<std::filesystem::path, std::int64_t> source_of(const std::string& text) {
  std::error_code error;
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || std::filesystem::exists(text, error)) return {text, 0};
  std::int64_t session = 0;
  const auto [end, bad] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), session);
  if (bad != std::errc() || end != text.data() + text.size() || session <= 0) return {text, 0};
  return {text.substr(0, colon), session};
}

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json side_json(const std::string& name, const ComparedSession& session, const Comparison::Side& side) {
  const Recording& recording = *session.recording;
  Json json{{"name", name},
            {"problem", recording.name},
            {"device", recording.device},
            {"differing_constants", to_json(session.differing_constants)},
            {"objective", session.objective->title()},
            {"unit", session.objective->unit()},
            {"usable", side.usable},
            {"rows", recording.size()}};
  json["best"] = nullptr;
  if (side.best)
    json["best"] = {{"configuration", describe(recording.parameters, recording.configuration(*side.best))},
                    {"value", side.value},
                    {"standard_error", side.standard_error},
                    {"half_width", side.half_width > 0 ? Json(side.half_width) : Json(nullptr)}};
  return json;
}

}  // namespace

Json comparison_json(const std::vector<std::string>& names, const std::vector<ComparedSession>& sessions,
                     const Comparison& comparison) {
  Json json{{"sessions", Json::array()}, {"pairs", Json::array()}, {"configurations", Json::array()}};
  for (std::size_t i = 0; i < sessions.size(); ++i)
    json["sessions"].push_back(side_json(names[i], sessions[i], comparison.sides[i]));
  for (const Comparison::Pair& pair : comparison.pairs) {
    json["pairs"].push_back(
        {{"a", pair.a},
         {"b", pair.b},
         {"common", pair.common},
         {"rank_correlation", or_null(pair.rank_correlation)},
         {"loss_of_a_in_b", or_null(pair.loss_of_a_in_b)},
         {"loss_of_a_in_b_error", pair.loss_of_a_in_b ? Json(pair.loss_error_a_in_b) : Json(nullptr)},
         {"loss_of_b_in_a", or_null(pair.loss_of_b_in_a)},
         {"loss_of_b_in_a_error", pair.loss_of_b_in_a ? Json(pair.loss_error_b_in_a) : Json(nullptr)}});
  }
  for (const Comparison::Row& row : comparison.rows) {
    Json values = Json::array(), places = Json::array(), half_widths = Json::array();
    for (const auto& value : row.values) values.push_back(or_null(value));
    for (const double half_width : row.half_widths)
      half_widths.push_back(half_width > 0 ? Json(half_width) : Json(nullptr));
    for (const auto& place : row.places) places.push_back(or_null(place));
    json["configurations"].push_back(
        {{"configuration", row.configuration}, {"values", values}, {"half_widths", half_widths}, {"places", places}});
  }
  json["points"] = Json::array();
  for (const auto& [a, b] : comparison.points) json["points"].push_back({a, b});
  return json;
}

ComparedFiles compare_files(const std::vector<std::string>& names, const std::optional<std::string>& objective) {
  if (names.size() < 2) throw UserError("name two sessions or more: ergotune compare before.db after.db");
  ComparedFiles compared;
  for (const std::string& text : names) {
    const auto [file, session] = source_of(text);
    compared.sources.push_back(open_report_source(file, session));
    const Recording& recording = compared.sources.back().recording;
    compared.warnings.emplace_back(file, recording.warnings);
    compared.objectives.push_back(report_objective(recording, objective));
    if (compared.objectives.back().title() != compared.objectives.front().title())
      throw UserError(fmt::format("{} was tuned for {} and {} for {}: name one objective for all (--objective time)",
                                  names.front(), compared.objectives.front().title(), text,
                                  compared.objectives.back().title()));
    compared.sessions.push_back({&recording, &compared.objectives.back(), {}});
  }
  for (ComparedSession& session : compared.sessions)
    for (const auto& constant : session.recording->constants)
      if (std::ranges::any_of(compared.sessions, [&](const ComparedSession& other) {
            const auto& constants = other.recording->constants;
            const auto found = constants.find(constant.first);
            return other.recording->name == session.recording->name && found != constants.end() &&
                   found->second != constant.second;
          }))
        session.differing_constants.insert(constant);
  compared.comparison = compare_sessions(compared.sessions);
  return compared;
}

}  // namespace ergotune
