#include "report/comparison_json.hpp"

#include <nlohmann/json.hpp>

namespace ergotune {
namespace {

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
            {"objective", session.objective->title()},
            {"unit", session.objective->unit()},
            {"usable", side.usable},
            {"rows", recording.size()}};
  json["best"] = nullptr;
  if (side.best)
    json["best"] = {{"configuration", describe(recording.parameters, recording.configuration(*side.best))},
                    {"value", side.value},
                    {"standard_error", side.standard_error},
                    {"half_width", side.half_width}};
  return json;
}

}  // namespace

Json comparison_json(const std::vector<std::string>& names, const std::vector<ComparedSession>& sessions,
                     const Comparison& comparison) {
  Json json{{"sessions", Json::array()}, {"pairs", Json::array()}, {"configurations", Json::array()}};
  for (std::size_t i = 0; i < sessions.size(); ++i)
    json["sessions"].push_back(side_json(names[i], sessions[i], comparison.sides[i]));
  for (const Comparison::Pair& pair : comparison.pairs) {
    json["pairs"].push_back({{"a", pair.a},
                             {"b", pair.b},
                             {"common", pair.common},
                             {"rank_correlation", or_null(pair.rank_correlation)},
                             {"loss_of_a_in_b", or_null(pair.loss_of_a_in_b)},
                             {"loss_of_a_in_b_error", pair.loss_error_a_in_b},
                             {"loss_of_b_in_a", or_null(pair.loss_of_b_in_a)},
                             {"loss_of_b_in_a_error", pair.loss_error_b_in_a}});
  }
  for (const Comparison::Row& row : comparison.rows) {
    Json values = Json::array(), places = Json::array();
    for (const auto& value : row.values) values.push_back(or_null(value));
    for (const auto& place : row.places) places.push_back(or_null(place));
    json["configurations"].push_back({{"configuration", row.configuration}, {"values", values}, {"places", places}});
  }
  json["points"] = Json::array();
  for (const auto& [a, b] : comparison.points) json["points"].push_back({a, b});
  return json;
}

}  // namespace ergotune
