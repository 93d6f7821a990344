#include "report/result_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ergotune {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value.data());
}

Json to_json(const Constants& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

Json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  Json object = Json::object();
  for (std::size_t i = 0; i < std::min(parameters.size(), configuration.size()); ++i) {
    object[parameters[i].name] = to_json(configuration[i]);
  }
  return object;
}

Json to_json(const Measurement& measurement) {
  Json quantities = Json::object();
  for (const auto& [name, quantity] : measurement.quantities) {
    Json entry{{"value", number_or_null(quantity.value)},
               {"standard_error", number_or_null(quantity.standard_error)},
               {"half_width", number_or_null(quantity.half_width())},
               {"n", quantity.n},
               {"method", quantity.method}};
    if (!quantity.sensor.empty()) entry["sensor"] = quantity.sensor;
    entry["provenance"] = to_string(quantity.provenance);
    quantities[name] = std::move(entry);
  }
  Json metrics = Json::object();
  for (const auto& [name, value] : measurement.metrics) metrics[name] = number_or_null(value);
  Json document{{"status", to_string(measurement.status)},
                {"quantities", std::move(quantities)},
                {"metrics", std::move(metrics)}};
  if (!measurement.message.empty()) document["message"] = measurement.message;
  if (!measurement.warnings.empty()) document["warnings"] = measurement.warnings;
  return document;
}

}  // namespace ergotune
